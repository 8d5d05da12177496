"""Sites as checkers: what they blame, what they don't, and what is never shown."""

from pathlib import Path

import numpy as np
import pytest

from consortium.engine.closing import round_checkers
from consortium.engine.session import Session
from consortium.errors import BudgetError, DisagreementError
from consortium.privacy.mechanism import Mechanism
from site_agent.run.setup import Setup
from tests.support.finished_run import STUDY
from tests.support.local_consortium import LocalConsortium, build, conduct

RUN = "runs/small-0001"


def _local(root: Path) -> LocalConsortium:
    return LocalConsortium(build(root, text=STUDY))


def _exchange(local: LocalConsortium) -> Path:
    return Path(local.place.files.exchange)


def test_a_false_sum_is_refuted_and_the_site_takes_no_further_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    true = Mechanism.combine
    monkeypatch.setattr(Mechanism, "combine", lambda *given: true(*given) + np.uint8(1))
    local = _local(tmp_path)
    conduct(local.centre())  # a checker is busy while there is something to answer
    sites = local.study.sites
    for site in round_checkers(sites, local.study.checkers, 1):
        assert "not the sum of the sites' messages" in local.said(site)
        assert f"{site} disputes round" in local.said("centre")
        agent = local.agent(site)
        assert agent.site.store.load("small-0001", "refused") is not None


def test_an_altered_object_is_blamed_on_nobody(tmp_path: Path) -> None:
    local = _local(tmp_path)
    centre = local.centre()
    centre.open()
    centre.step()
    for path in (_exchange(local) / RUN / "00001" / "contribution").iterdir():
        path.write_bytes(b"\x00" + path.read_bytes()[1:])
    assert centre.session is not None
    while centre.session.pending is not None:
        centre.step()
    centre.finish()
    said = "\n".join(map(local.said, local.study.sites))
    assert "can't be recomputed now" in said
    assert "disputes" not in local.said("centre")
    assert len(list((_exchange(local) / RUN / "attestation").iterdir())) == 4


def test_a_release_beyond_the_promise_shows_no_seed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    local = _local(tmp_path)
    centre = local.centre()
    centre.open()

    def broken(*_: object) -> None:
        raise BudgetError("more than was promised")

    monkeypatch.setattr(Session, "accept", broken)
    with pytest.raises(BudgetError):
        centre.step()
    assert (_exchange(local) / RUN / "00001" / "unmasking").exists()
    assert not (_exchange(local) / RUN / "00001" / "release").exists()


def test_a_centre_that_starts_again_says_the_same_of_its_rounds(tmp_path: Path) -> None:
    local = _local(tmp_path)
    centre = local.centre()
    centre.open()
    centre.step()
    path = _exchange(local) / RUN / "00001" / "release"
    before = path.read_bytes()
    for file in (local.place.files.out / "transcript").iterdir():
        file.unlink()  # as if it had been killed between release and transcript
    result = conduct(local.centre())
    assert path.read_bytes() == before
    local.agents.clear()  # every site is killed and built again after the end
    assert conduct(local.centre()) == result


def test_a_site_with_another_plan_is_named_before_round_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    true = Setup._agree

    def other(setup: Setup, notes: dict[str, bytes]) -> bytes:
        digest = true(setup, notes)
        return bytes(32) if setup.site.name == "east" else digest

    monkeypatch.setattr(Setup, "_agree", other)
    local = _local(tmp_path)
    with pytest.raises(DisagreementError, match="east works out another plan than the centre"):
        conduct(local.centre())
    assert not (_exchange(local) / RUN / "00001").exists()
