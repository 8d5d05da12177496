"""Public basis of smooth maps on a surface: the lowest eigenfunctions of its Laplacian.

They correspond to waves in a plane: λ is the square of 2π over the wavelength, and heat that
spreads for σ²/2 multiplies each by exp(-λσ²/2). Every party computes them from the study's mesh.
Eigenvectors of nearly equal λ depend on rounding. So the released coefficients are in an
orthonormal basis that depends only on their span, that of the maps nearest to single anchors. The
sign of each eigenfunction is set by a rule, so fields that are drawn from them are equal for all
parties.

Source: linear finite elements on triangles, cotangent stiffness and lumped mass (Reuter et al.
2006); for the number of modes below a wavelength, area π/wavelength² (Weyl 1911).
"""

from dataclasses import dataclass

import numpy as np
from scipy.sparse import coo_array, csc_array, csr_array, diags_array
from scipy.sparse.csgraph import dijkstra
from scipy.sparse.linalg import eigsh

from consortium.base.array import Array

MOST = 500
"""Maximum number of modes of a hemisphere: waves of 21 mm and longer on the white surface of
fsaverage5."""
_PART = 4
"""Least number of a surface's vertices for each mode."""
_SHIFT = -0.1
"""Shift of the inverted operator, relative to the largest λ by Weyl's law, near the smallest λ."""
_LANCZOS = 1.4
_MICROMETRE = 1000.0


@dataclass(frozen=True, eq=False)
class SurfaceModes:
    """Eigenfunctions of one hemisphere, the longest waves first."""

    values: Array
    """λ in mm⁻², shape (k,)."""
    vectors: Array
    """Values at the vertices of the cortex, of unit norm over the area. Shape (V, k)."""
    anchors: Array
    """Vertices far apart from each other, as are the first of any number of them. Integers, shape
    (k,)."""
    area: float
    """Area in mm²."""

    @property
    def finest(self) -> float:
        """Shortest wavelength in mm."""
        return float(2 * np.pi / np.sqrt(self.values[-1]))

    def below(self, cutoff: float) -> int:
        """Return the number of modes with a wavelength of ``cutoff`` mm or longer."""
        return int(np.searchsorted(self.values, (2 * np.pi / cutoff) ** 2, side="right"))

    def heat(self, variance: float) -> tuple[Array, float]:
        """Return exp(-λ variance) of each mode, and the sum over all modes that exist.

        The number of modes beyond the computed ones is taken from Weyl's law.
        """
        weights = np.exp(-self.values * variance)
        rest = self.area / (4 * np.pi * variance) * float(weights[-1])
        return weights, float(weights.sum()) + rest


def surface_modes(
    coordinates: Array, triangles: Array, cortex: Array, most: int = MOST
) -> SurfaceModes:
    """Compute the lowest modes of the triangles that touch the cortex, with a free boundary.

    Parameters
    ----------
    coordinates : array, shape (N, 3)
        Vertices in mm.
    triangles : array of int, shape (F, 3)
    cortex : array of bool, shape (N,)
    """
    inside = triangles[cortex[triangles].any(axis=1)]
    used = np.unique(inside)
    renumbered = np.searchsorted(used, inside)
    points = coordinates[used]
    own = cortex[used]
    stiffness, mass = _elements(points, renumbered)
    k = max(2, min(most, len(used) // _PART))
    area = float(mass.sum())
    roots = 1 / np.sqrt(mass)
    scaled = csc_array(diags_array(roots) @ stiffness @ diags_array(roots))
    start = np.linspace(1.0, 2.0, len(used))  # the same at every party
    found, vectors = eigsh(
        scaled,
        k,
        sigma=_SHIFT * 4 * np.pi * k / area,
        v0=start,
        ncv=min(len(used), int(_LANCZOS * k) + 20),
    )
    order = np.argsort(found)
    values = np.maximum(found[order], 0.0)
    chosen = (roots[:, None] * _one_sign(vectors[:, order]))[own]
    return SurfaceModes(values, chosen, _anchors(points, renumbered, own, k), area)


def _one_sign(vectors: Array) -> Array:
    """Return columns with a positive product with cos n², which is not zero by any symmetry."""
    products = np.cos(np.arange(len(vectors)) ** 2.0) @ vectors
    return np.asarray(vectors * np.where(products < 0, -1.0, 1.0))


def _elements(points: Array, triangles: Array) -> tuple[csc_array, Array]:
    """Return the stiffness, and each vertex's third of its triangles' area."""
    corners = points[triangles]
    many = len(points)
    one = corners[:, 1] - corners[:, 0]
    other = corners[:, 2] - corners[:, 0]
    doubled = np.linalg.norm(np.cross(one, other), axis=1)
    stiffness = csc_array((many, many))
    for a, b, c in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
        facing = (corners[:, b] - corners[:, a]) * (corners[:, c] - corners[:, a])
        half = facing.sum(axis=1) / doubled / 2  # half the cotangent at a, for the edge from b to c
        edge = coo_array((half, (triangles[:, b], triangles[:, c])), shape=(many, many))
        stiffness = stiffness - csc_array(edge + edge.T)
    whole = csc_array(stiffness - diags_array(stiffness.sum(axis=0)))
    mass = np.bincount(triangles.ravel(), np.repeat(doubled / 6, 3), many)
    return whole, mass


def _anchors(points: Array, triangles: Array, own: Array, count: int) -> Array:
    """Return vertices of the cortex by farthest-point sampling along edges.

    Lengths are integer micrometres, so sums are exact and every party computes the same result.
    """
    edges = np.sort(triangles[:, [0, 1, 1, 2, 2, 0]].reshape(-1, 2), axis=1)
    ends = np.unique(edges, axis=0)
    lengths = np.rint(_MICROMETRE * np.linalg.norm(points[ends[:, 0]] - points[ends[:, 1]], axis=1))
    shape = len(points), len(points)
    graph = csr_array((np.maximum(lengths, 1.0), (ends[:, 0], ends[:, 1])), shape=shape)
    places = np.flatnonzero(own)
    nearest = np.full(len(places), np.inf)
    chosen = [0]
    for _ in range(min(count, len(places)) - 1):
        away = dijkstra(graph, directed=False, indices=places[chosen[-1]])[places]
        nearest = np.minimum(nearest, away)
        chosen.append(int(nearest.argmax()))
    return np.array(chosen)
