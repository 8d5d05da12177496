"""Two builds of one commit are one release, byte for byte."""

import hashlib
import os
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[2]


def built(folder: Path, umask: int, zone: str) -> dict[str, str]:
    """Hashes of a release's files by name, as another person builds it."""
    line = [sys.executable, ROOT / "deploy" / "release.py", folder]
    around = {**os.environ, "TZ": zone}
    subprocess.run(line, env=around, check=True, capture_output=True, umask=umask)
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()}


def test_two_builds_have_one_hash(tmp_path: Path) -> None:
    one = built(tmp_path / "one", 0o022, "UTC")
    time.sleep(2.1)  # longer than an archive's clock ticks
    two = built(tmp_path / "two" / "deeper", 0o077, "Asia/Tokyo")
    assert one == two
    ends = sorted(name.split("-")[0] + Path(name).suffix for name in one if name != ".gitignore")
    assert ends == ["cape_consortium.gz", "cape_consortium.whl", "cape_relay.gz", "cape_relay.whl"]
