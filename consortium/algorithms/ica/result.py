"""What an ICA found: which components lie in directions that stand out of the noise."""

import numpy as np

from consortium.algorithms.base import Array, Result, Table


def is_within(subspace: Result, weights: Array) -> tuple[bool, ...]:
    """Whether at least half of each component's variance lies in directions that PCA found.

    Parameters
    ----------
    subspace : Result
        Of the PCA.
    weights : array, R x R
        Each component (column) in the eigenvectors.
    """
    squares = np.square(weights)
    inside = squares[np.array(subspace.captions.columns_found)].sum(axis=0)
    return tuple(bool(each) for each in inside >= squares.sum(axis=0) / 2.0)


def components_table(found: tuple[bool, ...]) -> Table:
    """Which components were found."""
    rows = [(k, "found" if each else "not found") for k, each in enumerate(found, 1)]
    return Table(
        "Components; found are those of which half or more lies in directions that stand out of "
        "noise, chance and white data, unless all voxels have nearly the same of it, as of a "
        "global signal. How far one is from a true network is not known.",
        ("component", "state"),
        tuple(rows),
    )


def headline(found: int, many: int) -> str:
    """Say how many of the components were found."""
    if not found:
        return "Nothing was found: no component stands out of noise, chance and white data."
    return (
        f"{found} of {many} components stand out of noise, chance and white data; how far each is "
        "from a true network is not known."
    )
