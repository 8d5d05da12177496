"""A site's own configuration."""

from __future__ import annotations

from pathlib import Path
from typing import Self

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from consortium.errors import ConfigurationError
from consortium.study import Name

CONFIG = "site.yaml"


class Limits(BaseModel):
    """The most that all studies together may cost this data set; the ledger holds to it."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    subject: float = Field(default=20.0, gt=0, description="Total ε for unit subject.")
    timepoint: float = Field(default=5.0, gt=0, description="Total ε for unit timepoint.")
    delta: float = Field(default=1e-5, gt=0, lt=0.5, description="δ that belongs to both.")


class SiteConfig(BaseModel):
    """What a site's owner sets; every other decision is in the study file."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: Name = Field(description="Name of this site, as in the studies.")
    dataset: Path = Field(
        description="BIDS folder (or its derivatives) that is read; it is never written to."
    )
    exchange: Path = Field(description="Directory that the consortium shares.")
    limits: Limits = Field(default_factory=Limits, description=Limits.__doc__)
    prefect: bool = Field(
        default=False,
        description="Run as a flow on this site's own Prefect (PREFECT_API_URL of its owner).",
    )

    @classmethod
    def create(cls, name: str, dataset: Path, exchange: Path) -> Self:
        """Make a configuration from what a user typed.

        Raises
        ------
        ConfigurationError
            If the name is not one that a study can use.
        """
        try:
            return cls(name=name, dataset=dataset.resolve(), exchange=exchange.resolve())
        except ValidationError as error:
            raise ConfigurationError(_first_problem(error)) from error

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Read ``site.yaml`` of a site's folder; relative paths are meant from there.

        Raises
        ------
        ConfigurationError
            If it is missing, or a field is unknown, missing or out of range.
        """
        path = folder / CONFIG
        try:
            values = yaml.safe_load(path.read_text(encoding="utf-8"))
            config = cls.model_validate(values)
        except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
            raise ConfigurationError(
                f"{path} can't be read; make it with 'site-agent init'."
            ) from error
        except ValidationError as error:
            raise ConfigurationError(f"{path}: {_first_problem(error)}") from error
        return config.model_copy(
            update={"dataset": folder / config.dataset, "exchange": folder / config.exchange}
        )

    def save(self, folder: Path) -> None:
        """Write ``site.yaml`` with a comment on every field."""
        lines = []
        for name, value in self.model_dump(mode="json").items():
            field = type(self).model_fields[name]
            lines.append(f"# {field.description}")
            lines.append(yaml.safe_dump({name: value}, sort_keys=False).rstrip())
        (folder / CONFIG).write_text("\n".join(lines) + "\n", encoding="utf-8")


def _first_problem(error: ValidationError) -> str:
    problem = error.errors(include_url=False)[0]
    field = ".".join(map(str, problem["loc"])) or "it"
    return f"field '{field}': {problem['msg']}; correct it."
