"""The files in deploy/ name what is there: paths, commands and their options."""

import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest
import typer.main
import yaml

from consortium.coordinator.cli import app as consortium
from site_agent.cli import app as site_agent

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
UNITS = sorted(DEPLOY.glob("*.service"))
COMPOSED = {"centre": "consortium", "site": "site-agent"}
COMMANDS = {"consortium": consortium, "site-agent": site_agent}


def _pinned(name: str) -> dict[str, list[str]]:
    """Packages of a lock file with their hashes."""
    text = (ROOT / name).read_text(encoding="utf-8")
    found = re.findall(r"^([\w.-]+==\S+)(?: ; [^\\\n]*)? \\\n((?: {4}--hash=\S+.*\n)+)", text, re.M)
    return {package: re.findall(r"sha256:\w+", hashes) for package, hashes in found}


def test_what_is_installed_is_what_was_tested_without_the_tools_of_tests() -> None:
    installed, tested = _pinned("deploy/requirements-all.lock"), _pinned("requirements.lock")
    assert len(installed) > 100
    assert {name: tested.get(name) for name in installed} == installed
    names = {package.split("==")[0] for package in installed}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    tools = {re.split(r"[\[>=]", each)[0] for name in ("dev", "bench") for each in extras[name]}
    assert names.isdisjoint(tools)
    shipped = ("prefect", "s3", "sftp", "eeg", "fast")
    needed = [*project["dependencies"], *(each for name in shipped for each in extras[name])]
    assert {re.split(r"[\[>=]", each)[0] for each in needed} <= names
    lean = _pinned("deploy/requirements.lock")
    assert {name: installed.get(name) for name in lean} == lean
    bare = {package.split("==")[0] for package in lean}
    needed = [*project["dependencies"], *extras["fast"]]
    assert {re.split(r"[\[>=]", each)[0] for each in needed} <= bare
    assert len(bare | {"cape-consortium"}) <= 60  # two of them for other systems than Linux
    assert bare.isdisjoint({"prefect", "fastapi", "sqlalchemy", "paramiko", "mne"})


@pytest.mark.parametrize("who", COMPOSED)
def test_an_image_starts_a_command_that_there_is_as_nobody_in_particular(who: str) -> None:
    text = (DEPLOY / "Containerfile").read_text(encoding="utf-8")
    assert "--require-hashes" in text
    stages = dict(re.findall(r"^FROM \S+ AS (\w+)\n(.*?)(?=^FROM |\Z)", text, re.M | re.S))
    user, number = re.findall(r'^RUN echo "(\w+):x:(\d+):', stages[who], re.M)[0]
    assert re.findall(r"^USER (\w+)$", stages[who], re.M) == [user]
    assert re.findall(r'^ENTRYPOINT \["([\w-]+)"\]$', stages[who], re.M) == [COMPOSED[who]]
    assert all(source.startswith("dist/") for source in re.findall(r"^COPY (dist\S+)", text, re.M))
    parts = yaml.safe_load((DEPLOY / f"{who}.compose.yaml").read_text(encoding="utf-8"))
    known = typer.main.get_command(COMMANDS[COMPOSED[who]]).commands  # type: ignore[attr-defined]
    for service in parts["services"].values():
        assert service["image"] == COMPOSED[who]
        assert service["user"].split(":")[0] == number
        assert (service["read_only"], service["cap_drop"]) == (True, ["ALL"])
        command, *words = service["command"]
        if command != "--help":
            options = {option for each in known[command].params for option in each.opts}
            assert {word for word in words if word.startswith("--")} <= options
    assert "init" in parts["services"]


@pytest.mark.parametrize("path", UNITS, ids=lambda path: path.name)
def test_a_unit_calls_a_command_with_options_that_it_has(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    (line,) = re.findall(r"^ExecStart=/opt/cape-consortium/bin/(.*)$", text, re.M)
    program, command, *words = line.split()
    known = typer.main.get_command(COMMANDS[program]).commands[command]  # type: ignore[attr-defined]
    options = {option for each in known.params for option in each.opts}
    assert {word for word in words if word.startswith("--")} <= options
    required = {each.opts[0] for each in known.params if each.required}
    assert {option for option in required if option.startswith("--")} <= set(words)
    for setting in ("NoNewPrivileges=yes", "ProtectSystem=strict", "Restart=on-failure"):
        assert f"\n{setting}\n" in text
    assert "\nSuccessExitStatus=143\n" in text  # of the signal that stops it
    example = (DEPLOY / "centre.env.example").read_text(encoding="utf-8")
    for name in re.findall(r"\$\{?(\w+)\}?", line):
        assert re.search(rf"^{name}=", example, re.M), name
    if "$MORE" in line:
        (more,) = re.findall(r"^# MORE=(.*)$", example, re.M)
        assert {word for word in more.split() if word.startswith("--")} <= options


def test_other_files_call_commands_with_options_that_they_have() -> None:
    known = typer.main.get_command(site_agent).commands  # type: ignore[attr-defined]
    slurm = (DEPLOY / "slurm-prepare.sh").read_text(encoding="utf-8")
    (command, words) = re.findall(r'^"\$PROGRAM" (\w+) (.*)$', slurm, re.M)[0]
    options = {option for each in known[command].params for option in each.opts}
    assert {word for word in words.split() if word.startswith("--")} <= options
    assert "unset PREFECT_API_URL" in slurm  # a server that is not the hospital's learns nothing
    files = (DEPLOY / "site-agent.kubernetes.yaml").read_text(encoding="utf-8")
    pod = next(yaml.safe_load_all(files))["spec"]
    assert pod["replicas"] == 1
    (agent,) = pod["template"]["spec"]["containers"]
    assert agent["args"][0] in known
    probe = agent["livenessProbe"]["exec"]["command"]
    options = {option for each in known[probe[1]].params for option in each.opts}
    assert set(probe[2:]) <= options
    definition = (DEPLOY / "apptainer.def").read_text(encoding="utf-8")
    assert "--require-hashes" in definition
    container = (DEPLOY / "Containerfile").read_text(encoding="utf-8")
    assert re.findall(r"^From: (\S+)$", definition, re.M)[0] in container


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
@pytest.mark.parametrize("path", UNITS, ids=lambda path: path.name)
def test_systemd_finds_no_fault_but_the_missing_program(path: Path) -> None:
    done = subprocess.run(
        ["systemd-analyze", "verify", str(path)], capture_output=True, text=True, check=False
    )
    faults = [line for line in done.stderr.splitlines() if path.name in line]
    assert all("is not executable" in line for line in faults), done.stderr


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
@pytest.mark.parametrize("path", UNITS, ids=lambda path: path.name)
def test_systemd_calls_the_exposure_low(path: Path) -> None:
    done = subprocess.run(
        ["systemd-analyze", "security", "--offline=yes", "--threshold=20", str(path)],
        capture_output=True,
        text=True,
        check=False,
    )
    if "nknown command" in done.stderr or "unrecognized" in done.stderr:
        pytest.skip("this systemd knows no offline analysis")
    assert done.returncode == 0, done.stdout + done.stderr
    # It would keep folders of a shared exchange from getting the mode 2770.
    assert not re.search(r"^RestrictSUIDSGID=(?!no)", path.read_text(encoding="utf-8"), re.M)
