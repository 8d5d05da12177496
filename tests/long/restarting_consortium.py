"""A village whose agents die and stay away, and are built again from their disks."""

from __future__ import annotations

import gc
from dataclasses import dataclass, field

from consortium.errors import ConsortiumError
from tests.protocol.faults import CENTRE, Died
from tests.support.local_consortium import LocalConsortium


@dataclass
class Mortal(LocalConsortium):
    """Parties in one process.

    ``away`` holds until when a site is not there; ``at_work`` is the party whose code runs.
    """

    away: dict[str, float] = field(default_factory=dict)
    at_work: str = CENTRE

    def pump(self) -> None:
        """Let every agent that is there work until it has nothing to do."""
        for name in self.study.sites:
            if self.ticks.now >= self.away.get(name, 0.0):
                self._work(name)
        self.at_work = CENTRE

    def _work(self, name: str) -> None:
        self.at_work = name
        try:
            if name not in self.agents:
                self.agent(name)._begin()
            while self.agents[name].round_trip():
                pass
        except Died:
            self._bury(name)
        except ConsortiumError as error:  # the service ends and is started again
            self.log.append((name, str(error)))
            self._bury(name)

    def _bury(self, name: str) -> None:
        """Free an agent's memory and files, as the end of its process would."""
        agent = self.agents.pop(name, None)
        if agent is not None:
            agent.site.store.close()
            agent.site.ledger.close()
        del agent
        gc.collect()
