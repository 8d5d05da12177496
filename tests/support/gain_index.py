"""How far an estimated unmixing is from the truth."""

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray


def gain_index(gain: NDArray[Any], *, power: Literal[1, 2] = 1) -> float:
    """Compute the normalized gain index of a gain matrix P = W A.

    With a_ij = |p_ij|^power,

        [ Σ_i (Σ_j a_ij / max_j a_ij − 1) + Σ_j (Σ_i a_ij / max_i a_ij − 1) ] / (2 R (R − 1)),

    which is 0 if and only if P is a scaled permutation, and 1 if all entries have one size. It
    does not change when the rows of W are permuted or all of W is scaled.

    Parameters
    ----------
    gain : array, shape (R, R)
        Unmixing times true mixing, R ≥ 2, real or complex.
    power : {1, 2}
        1 is Amari's index; for ICA of N samples it falls as 1/√N. 2 counts interference as
        energy and falls as 1/N.

    Returns
    -------
    float
        From 0 to 1. A row or column without any non-zero entry counts as wholly wrong, and a
        matrix that is not finite has index 1.

    Raises
    ------
    ValueError
        If ``gain`` is not square or has fewer than two rows.

    Notes
    -----
    Section 6.5 uses the index without printing it and cites the survey by K. Nordhausen,
    E. Ollila and H. Oja (SPAWC 2011); power 1 is by S. Amari, A. Cichocki and H. Yang (NIPS 1996).
    """
    if gain.ndim != 2 or gain.shape[0] != gain.shape[1] or len(gain) < 2:
        msg = f"The gain matrix has shape {gain.shape}; it must be square with two rows or more."
        raise ValueError(msg)
    if not np.isfinite(gain).all():
        return 1.0
    size = np.abs(gain)
    largest = size.max()
    # Scaling first keeps tiny or huge entries from under- or overflowing in the power.
    size = (size / largest) ** power if largest > 0 else size
    rank = len(gain)
    return (_excess(size) + _excess(size.T)) / (2 * rank * (rank - 1))


def _excess(size: NDArray[Any]) -> float:
    """Sum over rows of (row sum / row maximum − 1); a row of zeros counts R − 1."""
    largest = size.max(axis=1)
    empty = largest == 0
    ratios = size.sum(axis=1) / np.where(empty, 1.0, largest) - 1.0
    return float(np.where(empty, len(size) - 1.0, ratios).sum())
