"""The official BIDS validator, run on a folder."""

import json
import os
import subprocess
from importlib.util import find_spec
from pathlib import Path

from deno import find_deno_bin

ALLOWED = {"SUBJECT_FOLDERS", "SIDECAR_KEY_RECOMMENDED Sources"}
"""Correct findings on any result: it has no subject's folder and no subject's file."""


def objections(folder: Path, *allowed: str) -> list[str]:
    """Return errors and warnings, except those allowed, as "code at location".

    The validator's own command is not used: it can't read below /dev, where the tests' scratch
    files are.
    """
    package = find_spec("bids_validator_deno")
    assert package is not None
    assert package.origin is not None
    bundle = Path(package.origin).with_name("bids-validator.js")
    command = [find_deno_bin(), "--allow-all", bundle, "--format", "json", folder]
    quiet = os.environ | {"DENO_NO_UPDATE_CHECK": "1", "NO_COLOR": "1"}
    done = subprocess.run(command, env=quiet, capture_output=True, text=True, timeout=120)
    assert done.stdout, done.stderr
    found = json.loads(done.stdout)["issues"]["issues"]
    named = [(f"{i['code']} {i.get('subCode', '')}".strip(), i["location"]) for i in found]
    return [f"{what} at {where}" for what, where in named if what not in ALLOWED | {*allowed}]
