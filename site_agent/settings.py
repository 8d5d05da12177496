"""``site.yaml`` and ``policy.yaml`` as an agent uses them, read again once either changed."""

from dataclasses import dataclass
from pathlib import Path

from consortium.engine.clock import Clock
from consortium.errors import ConfigurationError
from site_agent.config import SiteConfig
from site_agent.layout import CONFIG, POLICY
from site_agent.policy.policy import Policy

_STANDS = 1.0  # s without change before a changed file counts: editors write in steps
_FIXED = ("name", "exchange", "credentials", "ledger")
_Stamp = tuple[tuple[int, int, int] | None, ...]


@dataclass(frozen=True)
class Settings:
    """A site's settings, from both files at the same time."""

    config: SiteConfig
    policy: Policy


class SettingsFiles:
    """The two files of a site's folder, read when made.

    Raises ConfigurationError if either can't be read.
    """

    def __init__(self, folder: Path, clock: Clock) -> None:
        self._folder = folder
        self._clock = clock
        self._read = self._seen = self._stamp()
        self._since = clock.now()
        self.first = Settings(SiteConfig.load(folder), Policy.load(folder))
        self._had_policy = self._seen[1] is not None
        self._now: Settings | ConfigurationError = self.first

    def look(self) -> Settings | ConfigurationError | None:
        """Return the present content of the files, or the error that makes it invalid.

        It returns None while one is being written: half a file must not count, nor the defaults of
        an empty one. The same object is returned for as long as nothing changed.
        """
        stamp = self._stamp()
        now = self._clock.now()
        if stamp != self._seen:
            self._seen = stamp
            self._since = now
        if stamp != self._read:
            if now - self._since < _STANDS:
                return None
            self._now = self._load()
            self._read = stamp
        return self._now

    def _load(self) -> Settings | ConfigurationError:
        try:
            self._check_policy()
            found = Settings(SiteConfig.load(self._folder), Policy.load(self._folder))
            self._check_fixed(found.config)
        except ConfigurationError as error:
            return error
        return found

    def _check_policy(self) -> None:
        if self._had_policy and self._seen[1] is None:
            raise ConfigurationError(
                f"{self._folder / POLICY} is missing, and its limits with it. Restore it, or "
                "restart the agent to use the defaults."
            )
        self._had_policy |= self._seen[1] is not None

    def _check_fixed(self, config: SiteConfig) -> None:
        """Refuse changes of fields that all runs of an agent and its ledger check share."""
        for name in _FIXED:
            if getattr(config, name) != getattr(self.first.config, name):
                raise ConfigurationError(
                    f"{self._folder / CONFIG}: field '{name}' has changed since the agent was "
                    "started. Restart the agent, or restore the field."
                )

    def _stamp(self) -> _Stamp:
        return tuple(_stamp_of(self._folder / name) for name in (CONFIG, POLICY))


def _stamp_of(path: Path) -> tuple[int, int, int] | None:
    """Return the modification time, size and inode of a file, or None if it is missing."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino
