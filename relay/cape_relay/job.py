"""Folders of jobs for a platform, with the relay's own code; no platform is imported."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from cape_relay.folder import RelayError

TASK = "sync"
_HERE = Path(__file__).parent


@dataclass(frozen=True)
class Job:
    """The messages that are carried, and their sites."""

    name: str
    """Name of the job."""
    sites: tuple[str, ...]
    """The sites' names on the platform."""
    least: int
    """Sites that the job requires."""
    only: tuple[str, ...]
    """Beginnings of the names that are carried."""
    last: str
    """Pattern of the name after which nothing is expected."""
    wait: float
    """Seconds that a party may wait for something to send."""
    hours: float
    """Hours after which the job ends in any case."""
    centre: str = ""
    """Site of the coordinator, if the platform's server has no folder."""


def write_nvflare(job: Job, output: Path, *, code: bool = True) -> None:
    """Write a job's folder for NVIDIA FLARE.

    Parameters
    ----------
    code : bool
        Whether the job includes the relay's code. If not, every party must have installed it.

    Raises
    ------
    RelayError
        If the folder exists already, or can't be written.
    """
    hub = {"only": job.only, "last": job.last, "wait": job.wait, "hours": job.hours}
    hub |= {"centre": job.centre} if job.centre else {}
    controller = {"id": "relay", "path": "cape_relay.flare.RelayController", "args": hub}
    executor = {"path": "cape_relay.flare.RelayExecutor", "args": {"only": job.only}}
    meta = {
        "name": job.name,
        "resource_spec": {},
        "min_clients": job.least,
        "deploy_map": {"hub": ["server"], "site": job.sites},
    }
    empty: dict[str, list[str]] = {
        "components": [], "task_data_filters": [], "task_result_filters": [],
    }  # fmt: skip
    files = {
        "meta.json": meta,
        "hub/config/config_fed_server.json": {
            "format_version": 2, "workflows": [controller], **empty
        },
        "site/config/config_fed_client.json": {
            "format_version": 2, "executors": [{"tasks": [TASK], "executor": executor}], **empty
        },
    }  # fmt: skip
    _write(output, {name: json.dumps(value, indent=2) + "\n" for name, value in files.items()})
    for app in ("hub", "site") if code else ():
        _copy_code(output / app / "custom" / "cape_relay", ("flare",))


def write_vantage6(job: Job, output: Path) -> None:
    """Write the input of a vantage6 task, and the build files of its image.

    Raises
    ------
    RelayError
        If the folder exists already, or can't be written.
    """
    given = {"only": job.only, "last": job.last, "wait": job.wait, "hours": job.hours}
    task = {"method": "central", "kwargs": given}
    files = {"task.json": json.dumps(task, indent=2) + "\n", "Dockerfile": DOCKERFILE}
    _write(output, files)
    _copy_code(output / "cape_relay", ("vantage",))


DOCKERFILE = """\
FROM docker.io/library/python:3.11-slim
RUN pip install --no-cache-dir "vantage6-algorithm-tools>=4.15,<5"
COPY cape_relay /opt/relay/cape_relay
ENV PYTHONPATH=/opt/relay PKG_NAME=cape_relay.vantage
CMD ["python", "-c", "from vantage6.algorithm.tools.wrap import wrap_algorithm; wrap_algorithm()"]
"""


def write_neuroflame(job: Job, output: Path) -> None:
    """Write a computation's repository for NeuroFLAME, and a study's parameters.

    Raises
    ------
    RelayError
        If the folder exists already, or can't be written.
    """
    study = {"name": job.name, "only": job.only, "last": job.last, "wait": job.wait}
    study |= {"hours": job.hours, "least": job.least + 1, "coordinator": "coordinator"}
    image = {"title": "cape-relay", "repository": "registry.example.org/cape-relay"}
    image |= {"floatingTag": "latest", "tagPrefix": "", "source": "https://example.org/cape-relay"}
    manifest = {
        "manifestVersion": 1,
        "computation": {"version": version("cape-relay")},
        "compatibility": {"computationApiVersion": "0.1.0", "boilerplateVersion": "0.1.0"},
        "image": image,
    }
    files = {
        ".neuroflame.json": json.dumps(manifest, indent=2) + "\n",
        "parameters.json": json.dumps(study, indent=2) + "\n",
        "requirements.txt": "nvflare==2.8.0\n",
        "Dockerfile-prod": DOCKERFILE_OF_NEUROFLAME,
    }
    entries = {f"system/entry_{each}.py": ENTRY.format(each) for each in ENTRIES}
    _write(output, files | entries)
    _copy_code(output / "cape_relay", ("flare", "job", "neuroflame"))


ENTRIES = ("provision", "edge", "central")
ENTRY = """\
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
from cape_relay import RelayError, neuroflame

try:
    neuroflame.{}()
except RelayError as error:
    sys.exit(str(error))
"""
DOCKERFILE_OF_NEUROFLAME = """\
FROM docker.io/library/python:3.11-slim
COPY requirements.txt /workspace/requirements.txt
RUN pip install --no-cache-dir --requirement /workspace/requirements.txt
COPY cape_relay /workspace/cape_relay
COPY system /workspace/system
WORKDIR /workspace
"""


def _write(output: Path, files: dict[str, str]) -> None:
    try:
        output.mkdir(parents=True)
        for name, text in files.items():
            (output / name).parent.mkdir(parents=True, exist_ok=True)
            (output / name).write_text(text, encoding="utf-8")
    except FileExistsError as error:
        raise RelayError(f"{output} exists already. Name a new folder.") from error
    except OSError as error:
        raise RelayError(f"{output} can't be written ({error.strerror}).") from error


def _copy_code(target: Path, platform: Sequence[str]) -> None:
    target.mkdir(parents=True)
    for module in ("__init__", "folder", "sync", *platform):
        shutil.copyfile(_HERE / f"{module}.py", target / f"{module}.py")
