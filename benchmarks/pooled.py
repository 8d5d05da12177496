"""The aggregate's noise compared with that of pooled data (dissertation Lemma 3.1)."""

import secrets

import numpy as np

from benchmarks.timing import show
from consortium.privacy.audit import symmetric
from consortium.privacy.loss import Boost, Scheme, boost_text
from consortium.privacy.noise import GaussianSampler

ROUNDS = 2000


def ratio(scheme: Scheme, sites: int, boost: Boost, entries: int = 50) -> tuple[float, bool]:
    """Return the aggregate's error variance over τ_pool² = τ²/S², and whether ê cancels exactly."""
    mechanism = symmetric(scheme, sites, 0, boost, entries)
    truth, errors, cancels = np.linspace(-1, 1, entries), [], True
    for _ in range(ROUNDS):
        shares = [
            mechanism.protect(s, truth, GaussianSampler(secrets.token_bytes(32)))
            for s in range(sites)
        ]
        hidden = sum((share.masked for share in shares[1:]), start=shares[0].masked)
        released = mechanism.release(hidden, [share.opened for share in shares])
        errors.append(released - truth)
        opened = sum((share.opened for share in shares[1:]), start=shares[0].opened)
        cancels &= (
            not len(opened)
            or scheme == "local"
            or bool(np.array_equal(mechanism.lattice.decode(opened - hidden), released))
        )
    return float(np.var(np.concatenate(errors)) * sites**2), cancels


def pooled() -> None:
    """Simulate 2,000 rounds for each number of sites and each scheme."""
    rows, cases = list[list[str]](), list[tuple[Scheme, int, Boost]]()
    cases += [
        ("cape", 4, "exact"),
        ("cape", 4, 1.0),
        ("cape", 4, 1e4),
        ("cape", 10, 1e4),
        ("local", 4, "exact"),
    ]
    for scheme, sites, boost in cases:
        found, cancels = ratio(scheme, sites, boost)
        rows.append([scheme, str(sites), boost_text(boost), f"{found:.4f}", str(cancels)])
    show(
        f"Aggregate noise over {ROUNDS} rounds of 50 numbers; local is S by design",
        ["scheme", "S", "κ", "variance / τ_pool²", "ê cancels exactly"],
        rows,
    )
