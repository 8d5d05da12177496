"""The page of a hospital's networks at home: its own, the release's and both together, in rows."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from consortium.algorithms.base import Array, Result
from consortium.algorithms.findings import DRAWN, Finding
from consortium.algorithms.worth import worth_sentence
from consortium.base.formatting import count, percent
from consortium.kernels.home_posterior import Posterior
from consortium.report.brain_figures import draw_slices, draw_surface
from consortium.report.image_sets import image_set_grid, on_grid
from consortium.report.pictures import Picture
from consortium.report.templating import plain_environment
from consortium.space.grid import Grid
from consortium.space.mesh import Mesh
from consortium.space.study_space import Space

NAMES = {
    "own": "This hospital alone",
    "release": "The consortium's release",
    "posterior": "Both together, at home",
}
_UNCOUNTED = (
    "Warning: the study counts on no hospital that works against the others (colluding_sites: 0). "
    "What is here was made without the noise that this hospital added, so that the promise holds; "
    "whoever takes that noise off the release sees more than was promised."
)
_ALIKE = 0.3
"""Correlation below which a map of another set is not put beside one."""


@dataclass(frozen=True)
class Cell:
    """A map in a row."""

    picture: Picture | None
    """None where no map of the set is like it."""
    caption: str
    """How sure it is, and how like the posterior's."""


def posterior_summary(
    posterior: Posterior, results: Mapping[str, Result], colluding: int, own_patients: bool
) -> tuple[str, ...]:
    """What came out, in sentences."""
    spreads, taken = posterior.spreads, posterior.taken
    whose = "this hospital's own patients" if own_patients else "all hospitals' participants"
    found = {name: int(result.numbers["found"]) for name, result in results.items()}
    own = count(taken.persons, "participant")
    together = f"{found['posterior']} of both together, as the networks of {whose}"
    shares = percent(posterior.share), percent(1.0 - posterior.share)
    networks = (
        f"Networks that count as found: {found['own']} of this hospital's {own} alone, "
        f"{found['release']} of the release, {together}."
    )
    worth = worth_sentence(spreads.worth(taken.everybody), "what was found here and by all")
    weights = f"Both together count its own data by {shares[0]}, and the others' by {shares[1]}."
    if colluding:
        return networks, worth, weights
    return networks, worth, weights, _UNCOUNTED


def posterior_html(
    study: str, space: Space, results: Mapping[str, Result], sentences: tuple[str, ...]
) -> str:
    """The page of a hospital's networks at home, as HTML."""
    template = plain_environment("site_agent.page", "consortium.report").get_template(
        "posterior.html.j2"
    )
    drawn = {name: each for name, result in results.items() if (each := _maps(space, result))}
    empty = [NAMES[name] for name in results if name not in drawn]
    return template.render(
        study=study, names=NAMES, sentences=sentences, rows=_rows(drawn), empty=empty
    )


@dataclass(frozen=True, eq=False)
class _Maps:
    """A set's maps on the voxels of its grid, or on a mesh."""

    grid: Grid | Mesh
    values: Array
    threshold: Array
    accuracy: tuple[Finding, ...]


def _rows(sets: Mapping[str, _Maps]) -> list[dict[str, Cell]]:
    """A row for each map of the posterior, or of the first set that there is."""
    base = next((sets[name] for name in ("posterior", "release", "own") if name in sets), None)
    if base is None:
        return []
    rows = []
    for k in range(base.values.shape[1]):
        peak = base.grid.coordinates[int(np.abs(base.values[:, k]).argmax())]
        rows.append({name: _cell(each, base, k, peak, name) for name, each in sets.items()})
    return rows


def _maps(space: Space, result: Result) -> _Maps | None:
    images = result.images.get("components")
    if images is None:
        return None
    values, least = (
        on_grid(space, images, np.asarray(v)) for v in (images.values, images.threshold)
    )
    return _Maps(image_set_grid(space, images), values, least, images.accuracy)


def _cell(maps: _Maps, base: _Maps, k: int, peak: Array, name: str) -> Cell:
    own = base.values[:, k] - base.values[:, k].mean()
    others = maps.values - maps.values.mean(axis=0)
    cosines = own @ others / (np.linalg.norm(own) * np.linalg.norm(others, axis=0))
    best = int(np.abs(cosines).argmax())
    if abs(cosines[best]) < _ALIKE:
        return Cell(None, "no map like it")
    values = maps.values[:, best] * np.sign(cosines[best])
    shown = np.where(np.abs(values) >= maps.threshold[:, best], values, 0.0)
    least = float(np.abs(shown)[shown != 0].min(initial=DRAWN))
    if isinstance(maps.grid, Mesh):
        picture = draw_surface(maps.grid, shown, least, NAMES[name])
    else:
        picture = draw_slices(maps.grid, shown, peak, least, NAMES[name])
    sure = maps.accuracy[best]
    state = "not found"
    if sure.reported:
        likely = f"{sure.value:.2f} ({sure.low:.2f} to {sure.high:.2f})"
        state = f"found, expected correlation {likely}"
    alike = "" if maps is base else f"; correlation with the map of both {abs(cosines[best]):.2f}"
    return Cell(picture, state + alike)
