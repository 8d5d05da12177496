"""What NeuroFLAME's containers are given; `make long` starts the entries themselves."""

import json
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from cape_relay import RelayError
from cape_relay.job import write_neuroflame
from cape_relay.neuroflame import job_of, members_of, parameters_of

from tests.unit.relay.cape_relay.test_job import JOB, files, read

MEMBERS = {"66a0": "Centre", "66a1": "North", "66a2": "East"}


@pytest.fixture
def image(tmp_path: Path) -> Path:
    write_neuroflame(JOB, tmp_path / "image")
    return tmp_path / "image"


def test_the_manifest_is_one_that_neuroflame_takes(image: Path) -> None:
    """By the rules of ``scripts/neuroflame_manifest.py`` in its boilerplate 0.1.0."""
    manifest = read(image / ".neuroflame.json")
    assert type(manifest["manifestVersion"]) is int
    assert manifest["manifestVersion"] == 1
    versions = [
        manifest["computation"]["version"],
        manifest["compatibility"]["computationApiVersion"],
        manifest["compatibility"]["boilerplateVersion"],
    ]
    assert all(re.fullmatch(r"\d+\.\d+\.\d+", each) for each in versions)
    told = manifest["image"]
    assert all(told[key].strip() for key in ("title", "repository", "floatingTag", "source"))
    assert isinstance(told["tagPrefix"], str)
    pins = (image / "requirements.txt").read_text().split()
    assert [pin for pin in pins if re.fullmatch(r"nvflare==\d+\.\d+\.\d+", pin)] == pins
    assert len(pins) == 1


def test_the_image_holds_what_its_entries_start(image: Path) -> None:
    entries = {f"system/entry_{each}.py" for each in ("provision", "edge", "central")}
    modules = ("__init__", "folder", "sync", "flare", "job", "neuroflame")
    code = entries | {f"cape_relay/{each}.py" for each in modules}
    assert {name for name in files(image) if name.endswith(".py")} == code
    for copied in ("requirements.txt", "cape_relay", "system"):
        assert f"COPY {copied} /workspace/{copied}" in (image / "Dockerfile-prod").read_text()


def given(**more: Any) -> dict[str, Any]:
    return {"fed_learn_port": 1, "host_identifier": "host", **more}


def test_members_are_read_as_the_platform_and_as_its_boilerplate_tell_them() -> None:
    users = [{"id": number, "name": name} for number, name in MEMBERS.items()]
    active = [{"participantId": n, "displayName": name} for n, name in MEMBERS.items()]
    assert members_of(given(users=users)) == MEMBERS
    assert members_of(given(active_participants=active, user_ids=[*MEMBERS])) == MEMBERS
    for wrong in ([], [*users, users[0]], [*users, {"id": "66a9", "name": "North"}]):
        with pytest.raises(RelayError, match="no members, or two with"):
            members_of(given(users=wrong))


@pytest.mark.parametrize("dump", [json.dumps, dict])
def test_a_runs_job_is_the_studys_for_its_members(dump: Any, image: Path) -> None:
    pasted = read(image / "parameters.json") | {"coordinator": "Centre", "site_id_name_map": {}}
    study = parameters_of(given(computation_parameters=dump(pasted)))
    assert job_of(study, MEMBERS) == replace(JOB, sites=tuple(MEMBERS), least=3, centre="66a0")
    with pytest.raises(
        RelayError, match=r"^The coordinator 'Centre' is not a member .*North, East"
    ):
        job_of(study, {who: name for who, name in MEMBERS.items() if name != "Centre"})


@pytest.mark.parametrize("pasted", [None, "", "{", "[]", "3", {}, {"only": []}])
def test_other_parameters_are_named(pasted: object) -> None:
    with pytest.raises(RelayError, match="Paste parameters"):
        parameters_of(given(computation_parameters=pasted))


def test_an_entry_says_what_is_wrong_in_a_sentence(image: Path, tmp_path: Path) -> None:
    path = tmp_path / "provision_input.json"
    path.write_text(json.dumps(given(users=[])), encoding="utf-8")
    words = [sys.executable, image / "system/entry_provision.py", "--input", path]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("The run names no members, or two with the same name.")
    assert set(tmp_path.iterdir()) == {image, path}
