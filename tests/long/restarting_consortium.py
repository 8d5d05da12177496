"""Parties that die and stay away, and are built again from their disks."""

import gc
from dataclasses import dataclass, field

from consortium.errors import ConsortiumError
from tests.protocol.watched import CENTRE, Died, Watcher
from tests.support.local_consortium import LocalConsortium


@dataclass
class RestartingConsortium(LocalConsortium):
    """Parties in one process.

    ``away`` holds until when a site is not there.
    """

    faults: Watcher = field(init=False)
    away: dict[str, float] = field(default_factory=dict)

    def pump(self) -> None:
        """Let every agent that is there work until it has nothing to do."""
        for name in self.study.sites:
            if self.ticks.now >= self.away.get(name, 0.0):
                self._work(name)
        self.faults.at_work = CENTRE

    def _work(self, name: str) -> None:
        self.faults.at_work = name
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
