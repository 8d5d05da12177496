"""An adversary against the real mechanism: what is promised holds, what was printed does not."""

import hashlib
from dataclasses import replace
from itertools import count

import numpy as np
import pytest

from consortium.privacy.audit import AuditRow, audit, audit_scheme, symmetric, worst_coalition
from consortium.privacy.loss import SiteNoise, printed_loss

TRIALS = 100_000
SETTINGS = [
    ("cape", 4, 1, 1.0),
    ("cape", 10, 3, 1.0),
    ("cape", 10, 3, 100.0),
    ("cape", 5, 0, 10_000.0),
    ("cape", 4, 1, "exact"),
    ("cape", 6, 5, "exact"),
    ("local", 4, 1, "exact"),
]


def fresh(seed):
    numbers = count()
    return lambda: hashlib.sha256(f"{seed} {next(numbers)}".encode()).digest()


@pytest.mark.parametrize(("scheme", "sites", "colluding", "boost"), SETTINGS)
def test_the_promise_holds_and_is_tight(scheme, sites, colluding, boost):
    finding = audit_scheme(scheme, sites, colluding, boost, TRIALS, fresh(1))
    assert finding.upheld, finding
    assert finding.tight, finding
    assert finding.error < 0.01


@pytest.mark.parametrize(("sites", "colluding"), [(4, 1), (10, 3)])
def test_the_printed_theorem_is_refuted(sites, colluding):
    finding = audit_scheme("cape", sites, colluding, 1.0, TRIALS, fresh(2))
    claim = replace(finding, promised=printed_loss(sites, colluding))
    assert not claim.upheld
    assert claim.empirical > claim.promised + 20 * claim.error


def test_noise_that_is_a_little_too_small_is_caught():
    honest = symmetric("cape", 4, 1, 10.0, TRIALS)
    promised = float(honest.coalition().max())
    weaker = replace(honest, local=tuple(int(0.95 * gamma) for gamma in honest.local))
    empirical, error = audit(weaker, TRIALS, fresh(3))
    assert not AuditRow("cape", 4, 1, 10.0, promised, empirical, error).upheld


def test_a_promise_that_is_too_careful_is_caught():
    empirical, error = audit(symmetric("cape", 4, 1, "exact", TRIALS), TRIALS, fresh(4))
    finding = AuditRow("cape", 4, 1, "exact", 1.1 * empirical, empirical, error)
    assert finding.upheld
    assert not finding.tight


def test_site_messages_without_correlated_noise_are_caught():
    # As if the noise that cancels had been left out: γ alone hides a site.
    honest = symmetric("cape", 4, 1, 10.0, TRIALS)
    empirical, error = audit(replace(honest, correlated=(1,) * 4), TRIALS, fresh(5))
    assert empirical > honest.coalition().max() + 50 * error


def test_the_worst_coalition_hides_best():
    noise = SiteNoise("cape", (9.0, 9.0, 9.0, 0.1), (1.0, 3.0, 2.0, 9.0))
    assert worst_coalition(noise, 0, 2) == [1, 2]
    assert worst_coalition(noise, 1, 2) == [2, 0]
    assert worst_coalition(replace(noise, exact=True), 0, 1) == [3]


def test_the_standard_error_is_that_of_repeated_audits():
    mechanism = symmetric("cape", 3, 1, 1.0, 2000)
    runs = [audit(mechanism, 2000, fresh(seed)) for seed in range(60)]
    spread = np.std([empirical for empirical, _ in runs])
    assert spread == pytest.approx(runs[0][1], rel=0.35)
