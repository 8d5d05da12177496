"""A disk that is read at a known pace: an image file behind a loop, throttled by the kernel."""

import os
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

BLKIO = Path("/sys/fs/cgroup/blkio")


def can_slow() -> str | None:
    """Why this machine can't slow a disk down; None if it can."""
    if os.geteuid() != 0:
        return "only root can mount a disk and make users"
    if not (BLKIO / "blkio.throttle.read_bps_device").exists():
        return "the kernel's block controller (cgroup v1) is not mounted"
    return None


def _call(*words: object) -> str:
    return subprocess.run(
        list(map(str, words)), check=True, capture_output=True, text=True
    ).stdout.strip()


@dataclass
class SlowDisk:
    """A file system in an image file, which is mounted for reading and slowed by reader.

    Parameters
    ----------
    image : Path
        Where the file is made.
    mount : Path
        Where the file system is seen.
    """

    image: Path
    mount: Path
    _device: str = field(default="", init=False)
    _groups: list[Path] = field(default_factory=list, init=False)

    def make(self, mebibytes: int) -> None:
        """Make it, empty, and mount it for writing."""
        with self.image.open("wb") as file:
            file.truncate(mebibytes << 20)
        _call("mkfs.ext4", "-q", "-m", "0", self.image)
        self._device = _call("losetup", "--find", "--show", self.image)
        self.mount.mkdir()
        _call("mount", self._device, self.mount)

    def seal(self) -> None:
        """Mount it anew for reading only: nothing of it is in memory any more."""
        _call("umount", self.mount)
        _call("blockdev", "--flushbufs", self._device)
        _call("mount", "-o", "ro", self._device, self.mount)

    def reader(self, name: str, user: int, bytes_per_second: int) -> list[str]:
        """Words before a command of a user that make it read at this pace."""
        group = BLKIO / name
        group.mkdir(exist_ok=True)
        self._groups.append(group)
        number = Path(self._device).stat().st_rdev
        limit = f"{os.major(number)}:{os.minor(number)} {bytes_per_second}"
        (group / "blkio.throttle.read_bps_device").write_text(limit)
        os.chown(group / "cgroup.procs", user, -1)
        return ["sh", "-c", f'echo $$ > {group}/cgroup.procs && exec "$@"', "sh"]

    def remove(self) -> None:
        """Take everything away that was made on the machine."""
        if self.mount.is_mount():
            _call("umount", self.mount)
        if self._device:
            _call("losetup", "--detach", self._device)
        for group in self._groups:
            group.rmdir()
