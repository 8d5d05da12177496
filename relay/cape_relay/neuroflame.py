"""The relay as a computation of NeuroFLAME: an image whose entries start the relay over NVFLARE.

A member's folder is mounted where the computation's data would be. The central node has none, so it
keeps received messages for the time of a run, and the coordinator is a member as the sites are.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from argparse import ArgumentParser
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from cape_relay.folder import RelayError
from cape_relay.job import Job, write_nvflare

HOME = Path(__file__).parents[1]
"""``/workspace`` of the image, where NeuroFLAME mounts ``runKit`` and ``data``."""
_ADMIN = "admin@relay.org"
_PATIENCE = 300.0  # s for the server to start


def provision(words: Sequence[str] | None = None) -> None:
    """Make the run's kits: certificates for each member, and the job for the central node."""
    parser = ArgumentParser()
    parser.add_argument("--input", type=Path, default="/provisioning/provision_input.json")
    place = parser.parse_args(words).input
    given = json.loads(place.read_text(encoding="utf-8"))
    members = members_of(given)
    study = parameters_of(given)
    root = place.parent
    job = job_of(study, members)
    project = root / "Project.yml"
    kits = root / "runKits"
    project.write_text(json.dumps(_project(given, job.sites)), encoding="utf-8")  # JSON is YAML
    command = ["nvflare", "provision", "-p", project, "-w", root / "startupKits", "--force"]
    subprocess.run(command, check=True)  # noqa: S603 - words of this module
    made = max((root / "startupKits" / "project").glob("prod_*"))
    central = kits / "centralNode"
    for name, kit in (
        (given["host_identifier"], central / "server"),
        (_ADMIN, central / "admin"),
        *((member, kits / member) for member in job.sites),
    ):
        kit.parent.mkdir(parents=True, exist_ok=True)
        (made / name).rename(kit)
    write_nvflare(job, central / "job")
    for kit in (central, *(kits / member for member in job.sites)):
        (kit / "parameters.json").write_text(json.dumps(study), encoding="utf-8")


def edge() -> None:
    """Serve a member's folder until the central node ends the run; becomes FLARE's client."""
    os.environ["CAPE_RELAY_FOLDER"] = str(HOME / "data")
    words = ["bash", str(HOME / "runKit/startup/sub_start.sh"), "--once"]
    os.execvp(words[0], words)  # noqa: S606 - signals and exit code are the client's


def central() -> None:
    """Start FLARE's server, submit the job, and wait for its end.

    Raises
    ------
    SystemExit
        If the job ends otherwise than complete.
    """
    from nvflare.fuel.flare_api.api_spec import TargetType
    from nvflare.fuel.flare_api.flare_api import new_secure_session

    kit = HOME / "runKit"
    hours = json.loads((kit / "parameters.json").read_text(encoding="utf-8"))["hours"]
    with tempfile.TemporaryDirectory() as folder:
        os.environ["CAPE_RELAY_FOLDER"] = folder
        subprocess.run(["bash", kit / "server/startup/start.sh"], check=True)  # noqa: S603, S607
        session = new_secure_session(_ADMIN, str(kit / "admin"), timeout=_PATIENCE)
        try:
            number = session.submit_job(str(kit / "job"))
            ended = session.wait_for_job(number, timeout=3600 * (hours + 1), poll_interval=2)
        finally:
            session.shutdown(TargetType.ALL)
    if ended["status"] != "FINISHED:COMPLETED":
        sys.exit(f"The relay's job ended with {ended['status']}. See the server's log.")


def members_of(given: Mapping[str, Any]) -> dict[str, str]:
    """Return the names that a run's members show, by their ids.

    Parameters
    ----------
    given : mapping
        ``provision_input.json`` of the platform (``active_participants``), or of its boilerplate
        (``users``).

    Raises
    ------
    RelayError
        If it names no members, or one twice.
    """
    pairs = [(each["id"], each["name"]) for each in given.get("users", ())] or [
        (each["participantId"], each["displayName"])
        for each in given.get("active_participants", ())
    ]
    members = dict(pairs)
    if not members or not len(pairs) == len(members) == len(set(members.values())):
        raise RelayError(
            "The run names no members, or two with the same name. Start it with those of the study."
        )
    return members


def parameters_of(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the text that the consortium's leader pasted, which is `parameters` of a study.

    Raises
    ------
    RelayError
        If it is anything else.
    """
    said = given.get("computation_parameters")
    try:
        found: Any = json.loads(said) if isinstance(said, str) else said
        return {name: found[name] for name in _PARAMETERS}
    except (KeyError, TypeError, ValueError) as error:
        raise RelayError(
            "The computation's parameters are not those of the relay. Paste parameters.json as "
            "'consortium relay neuroflame' wrote it."
        ) from error


_PARAMETERS = ("name", "only", "last", "wait", "hours", "least", "coordinator")


def job_of(study: Mapping[str, Any], members: Mapping[str, str]) -> Job:
    """Make a run's job, whose parties are named by their ids.

    Raises
    ------
    RelayError
        If the coordinator is not a member.
    """
    centre = next((who for who, name in members.items() if name == study["coordinator"]), None)
    if centre is None:
        raise RelayError(
            f"The coordinator {study['coordinator']!r} is not a member of the run. Write one of "
            f"{', '.join(members.values())} into the parameters."
        )
    rest = (tuple(study["only"]), study["last"], study["wait"], study["hours"], centre)
    return Job(study["name"], tuple(members), study["least"], *rest)


def _project(given: Mapping[str, Any], members: Sequence[str]) -> dict[str, Any]:
    """Return FLARE's project: one server and port, an administrator, and the members."""
    who = [
        {
            "name": given["host_identifier"],
            "type": "server",
            "fed_learn_port": given["fed_learn_port"],
        },
        {"name": _ADMIN, "type": "admin", "role": "project_admin"},
        *({"name": member, "type": "client"} for member in members),
    ]
    own = "nvflare.lighter.impl"
    builders: list[dict[str, Any]] = [
        {
            "path": f"{own}.workspace.WorkspaceBuilder",
            "args": {"template_file": "master_template.yml"},
        },
        {
            "path": f"{own}.static_file.StaticFileBuilder",
            "args": {"config_folder": "config", "scheme": "grpc"},
        },
        {"path": f"{own}.cert.CertBuilder"},
        {"path": f"{own}.signature.SignatureBuilder"},
    ]
    parties = [{"org": "relay", **each} for each in who]
    return {"api_version": 3, "name": "project", "participants": parties, "builders": builders}
