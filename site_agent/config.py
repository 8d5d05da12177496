"""A site's own configuration: its paths and settings."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, Self

from pydantic import Field, ValidationError, model_validator

from consortium.base.frozen_model import FieldError, FrozenModel, first_problem
from consortium.base.model_file import read_model, write_model
from consortium.errors import ConfigurationError
from consortium.exchange import Exchange, open_exchange
from consortium.secagg import CENTRE
from consortium.study.spec import Name
from site_agent.layout import CACHE, CONFIG
from site_agent.machine import usable_cores, usable_memory

_TITLE = (
    "Paths and settings of this site. Limits for studies are in policy.yaml. Relative paths "
    "start from this folder."
)


_BYTES = {"MB": 10**6, "GB": 10**9, "TB": 10**12}
_LEAST_MEMORY = 10**8
_PROCESS = 150 * 10**6  # bytes that a process needs in addition to its scans


def _bytes_of(memory: str) -> int:
    """Return the bytes of a text such as 2 GB."""
    return int(float(memory[:-2]) * _BYTES[memory[-2:]])


class Alias(FrozenModel):
    """Name and values of a study's column at this site."""

    column: str | None = Field(default=None, min_length=1, max_length=200)
    """Name of the column here."""
    levels: dict[str, tuple[str, ...]] = Field(default={}, max_length=100)
    """By level of the study, the values here that mean it, as {SCZ: [scz, '1']}."""

    @model_validator(mode="after")
    def _each_means_one(self) -> Alias:
        values = [value for own in self.levels.values() for value in own]
        twice = sorted({value for value in values if values.count(value) > 1})
        if twice:
            raise FieldError(
                "levels", f"each value must mean one level, and '{twice[0]}' means two"
            )
        return self


class SiteConfig(FrozenModel):
    """Settings of a site's owner; every other decision is in the study file."""

    name: Name
    """Name of this site, as in the studies."""
    dataset: Path
    """BIDS folder (or its derivatives) that is read. It is never written to."""
    left_out: Path | None = None
    """Tab-separated table with columns participant_id and reason: participants of the data set who
    are in no study. It stays here, and so do its reasons."""
    participants: Path | None = None
    """Table of participants (participants.tsv) that is not in the data set, as fMRIPrep leaves it
    in the raw data set."""
    labels: Literal["canonical", "exact"] = "canonical"
    """'canonical': sub-001, 1, 1.0 and SUB-01 are one participant in every file. 'exact': labels
    that differ in case or zeros are different participants, as BIDS allows. The ledger charges both
    as one in either case."""
    accept_unoriented: bool = False
    """Whether images are used whose sform_code and qform_code are both 0, and which therefore do
    not state where left and right are. nibabel's guess of the orientation is then used. Set it only
    after you have checked left and right. `check` warns of such images."""
    nominal_participants: int | None = Field(default=None, ge=1, le=10_000_000)
    """Nominal number of participants of this site, as its staff state it to the consortium: a
    multiple of 10 below 100, two significant digits above. The true number stays here."""
    aliases: dict[str, Alias] = Field(default={}, max_length=1_000)
    """This site's names of a study's columns and levels, as {diagnosis: {column: Dx, levels: {SCZ:
    [scz, '1']}}}, by the study's column."""
    exchange: str
    """Where the consortium leaves its messages: a directory, s3://bucket/prefix or
    sftp://user@host/path."""
    credentials: Path | None = None
    """File (mode 600) with this site's credentials for the exchange; none for a directory."""
    ledger: Path = Path("ledger.sqlite")
    """The ledger. Agents of one hospital that read the same data set, for example for several
    consortia, must share one ledger."""
    cache: Path = Path(CACHE)
    """Folder of prepared scans. A missing folder is made, and its content computed again. Name
    another disk if this one is short of space, but never a place that others can read."""
    workers: int | None = Field(default=None, ge=1, le=256)
    """Maximum number of participants whose scans are prepared, or of parts of sixteen participants
    whose sums are computed, at the same time. None: the number of cores that the account may use,
    or fewer if `memory` is short."""
    memory: str | None = Field(default=None, pattern=r"^[0-9]{1,6}(\.[0-9]{1,3})? ?(MB|GB|TB)$")
    """Memory for all scans and sums that are computed at the same time, such as 2 GB, on this
    machine or over all workers of its cluster. Only as many participants or parts as fit are
    computed at a time, but always one. Results stay the same. Each process takes some 150 MB in
    addition. None: half of the memory of this machine or container; no limit on a cluster."""
    engine: Literal["threads", "processes", "dask", "ray"] = "threads"
    """Engine for preparation and computing: threads or processes of this machine, or the hospital's
    own Dask or Ray cluster, which shares the site's disks. Sums are equal to the last bit on all
    engines."""
    engine_address: str | None = None
    """Address of the cluster, for engine dask (tls://host:8786 of its scheduler) or ray (host:6379,
    or auto on a node of it). Without TLS the network must be private."""
    task_runner: str = "threads"
    """Runner of 'site-agent prepare': threads, processes, dask, ray, or module:Class of another
    Prefect task runner; dask and ray need prefect-dask and prefect-ray."""
    task_runner_options: dict[str, str | int | float | bool] = Field(default_factory=dict)
    """Options of that runner, such as {max_workers: 4} or {address: 'tcp://…'}."""
    page: bool = False
    """Whether the agent updates the site's page, site.html, whenever its state changes, as
    'start --page' does. 'site-agent page' writes it once."""
    security_log: Path | None = None
    """File or Unix socket, such as /dev/log, that receives a line in the form of RFC 5424 for each
    line of the ledger, approval, withdrawal, refusal and change of keys."""
    prefect: bool = False
    """Whether PREFECT_API_URL is the hospital's own Prefect server. The agent is then shown there
    as a flow, and 'site-agent prepare' may use the server, which then learns the number of
    participants."""

    @model_validator(mode="after")
    def _memory_is_something(self) -> Self:
        if self.memory is not None and _bytes_of(self.memory) < _LEAST_MEMORY:
            raise FieldError(
                "memory",
                "less than 100 MB is not enough for a participant's scan. Give more, or none",
            )
        return self

    @model_validator(mode="after")
    def _cluster_has_an_address(self) -> Self:
        cluster = self.engine in ("dask", "ray")
        if cluster and self.engine_address is None:
            raise FieldError("engine_address", f"engine {self.engine} needs its cluster's address")
        if not cluster and self.engine_address is not None:
            raise FieldError("engine_address", f"engine {self.engine} has none. Name dask or ray")
        return self

    @property
    def most_memory(self) -> int | None:
        """Bytes that scans and sums may take together, or None on a cluster without a limit."""
        if self.memory is not None:
            return _bytes_of(self.memory)
        return usable_memory() // 2 if self.engine in ("threads", "processes") else None

    @property
    def most_workers(self) -> int:
        """Maximum number of threads or processes on this machine."""
        if self.workers is not None:
            return self.workers
        return max(1, min(usable_cores(), usable_memory() // 2 // _PROCESS))

    @classmethod
    def create(
        cls,
        name: str,
        dataset: Path,
        exchange: str,
        credentials: Path | None = None,
        nominal_participants: int | None = None,
    ) -> Self:
        """Make a configuration from a user's input.

        Raises ConfigurationError if the name is not one that a study can use.
        """
        if name == CENTRE:
            raise ConfigurationError(
                f"'{CENTRE}' is the coordinator's own name. Choose another with --name."
            )
        place = exchange if "://" in exchange else str(Path(exchange).resolve())
        try:
            return cls(
                name=name,
                dataset=dataset.resolve(),
                exchange=place,
                credentials=credentials and credentials.resolve(),
                nominal_participants=nominal_participants,
            )
        except ValidationError as error:
            raise ConfigurationError(first_problem(error, cls)) from error

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Read ``site.yaml`` of a site's folder.

        Raises ConfigurationError if it is missing, or a field is unknown, missing or out of range.
        """
        path = folder / CONFIG
        if not path.exists():
            raise ConfigurationError(f"{path} can't be read. Make it with 'site-agent init'.")
        config = read_model(path, cls)
        place = config.exchange
        return config.model_copy(
            update={
                "dataset": folder / config.dataset,
                "exchange": place if "://" in place else str(folder / place),
                "credentials": config.credentials and folder / config.credentials,
                "left_out": config.left_out and folder / config.left_out,
                "participants": config.participants and folder / config.participants,
                "ledger": folder / config.ledger,
                "security_log": config.security_log and folder / config.security_log,
                "cache": config._own_place(folder),
            }
        )

    def _own_place(self, folder: Path) -> Path:
        """Return the folder of prepared scans, which is not on the exchange, which others read."""
        place = folder / self.cache
        shared = None if "://" in self.exchange else (folder / self.exchange).resolve()
        if shared and place.resolve().is_relative_to(shared):
            raise ConfigurationError(
                f"{folder / CONFIG}: field 'cache': {place} is on the exchange, which others "
                "read. Name another folder."
            )
        return place

    def save(self, folder: Path) -> None:
        """Write ``site.yaml`` with a comment on every field.

        Raises ConfigurationError if it can't be written.
        """
        write_model(folder / CONFIG, self, _TITLE)

    def open_exchange(self) -> Exchange:
        """Open the exchange; raises as `consortium.exchange.open_exchange`."""
        return open_exchange(self.exchange, self.credentials)
