"""How to read what the page shows."""

from statistics import NormalDist

from consortium.report.bids import voxel_text
from consortium.report.brain_figures import THRESHOLD
from consortium.report.finished import ComponentMaps, Finished
from consortium.report.sections.base import PageSection
from consortium.report.views import REPORTS
from consortium.space.mesh import Mesh

SHARES = {
    True: " The explained share is of the variance of the participants' data, as clipped.",
    False: " The explained share is of all components together, not of all data.",
}
"""By whether the analysis tells parts of the data's own variance."""
READING = (
    (
        "A map shows how strongly each voxel takes part in one component. In a temporal "
        "decomposition (temporal ICA, PCA) it is the component's column of the mixing matrix, and "
        "the component's time series, which stay at the sites, are made independent or "
        "uncorrelated; networks may therefore overlap in space."
    ),
    (
        "Sign and order of components are arbitrary in such an analysis. Here the heavier tail of "
        "each map is positive (red), voxels in blue go the other way, and the components are in "
        "the order of the variance they explain.{share}"
    ),
    (
        "Values are robust z-scores: distance from the map's median in units of its noise floor "
        "(1.4826 times the median absolute deviation). They describe how far a voxel stands out "
        "of its own map; they are not test statistics over participants, and carry no p-value. "
        "Voxels with |z| below {threshold:g} are not drawn; of pure Gaussian noise, {beyond:.2g} "
        "% of the voxels would be."
    ),
    (
        "Slices cut at the map's peak, in millimetres of the template space; the left of the "
        "picture is the left of the brain. Pictures are interpolated between the voxels of the "
        "study's grid, {edges}; the image file holds the voxels as they are, without a threshold."
    ),
)
"""How to read the maps; ``threshold``, ``beyond`` and ``edges`` are filled in."""
PRIVACY_NOISE = (
    "Of these maps it is known how much of a voxel's value privacy noise alone makes: its standard "
    "deviation is beside each map, voxel by voxel in the image that ends in _noise, and is part of "
    "the noise floor. Voxels below {threshold:g} times it are not drawn, whatever their z."
)
"""Follows what is said about values, if the maps were released with noise of their own."""
SETS = (
    "Slices cut at the map's peak, in millimetres of the template space; the left of the picture "
    "is the left of the brain. A map that is not distinguishable from the noise could have come "
    "from noise alone: it is in the image file, and is not drawn. The image files hold every "
    "voxel, without a threshold."
)
SURFACES = (
    "Both cortices are drawn from outside and inside, those of fsaverage5 inflated, with their "
    "folds in grey, and others as the study's surface is. The CIFTI and GIFTI files hold every "
    "vertex, without a threshold; in GIFTI the medial wall is not a number."
)

MIXED = (
    "Of a view that measures given component maps, what is drawn is the sum of these maps, each "
    "times its own number: what a voxel shows belongs to the maps that it lies in, and was not "
    "measured there."
)


def section(run: Finished) -> PageSection | None:
    """Tell how to read component maps, columns in their views, and sets of maps."""
    paragraphs = [
        *(_of_components(run.components) if run.components else []),
        *_of_columns(run),
        *_of_sets(run),
    ]
    heading = f"How to read the {'maps' if run.components else 'results'}"
    return PageSection("reading", {"paragraphs": paragraphs}, heading) if paragraphs else None


def _of_components(maps: ComponentMaps) -> list[str]:
    beyond = 200 * NormalDist().cdf(-THRESHOLD)
    *before, last = READING
    paragraphs = [*before, *([PRIVACY_NOISE] if maps.noise is not None else []), last]
    edges = ""
    if isinstance(maps.grid, Mesh):
        paragraphs = [*map(_of_vertices, paragraphs[:-1]), SURFACES]
    else:
        edges = voxel_text(maps.grid)
    share = SHARES[bool(maps.shares)] if maps.tells_shares else ""
    known = {"threshold": THRESHOLD, "beyond": beyond, "edges": edges, "share": share}
    return [p.format(**known) for p in paragraphs]


def _of_vertices(text: str) -> str:
    """What is said of voxels, said of a mesh's vertices."""
    for voxels, vertices in (("oxels", "ertices"), ("oxel", "ertex")):
        text = text.replace(f"v{voxels}", f"v{vertices}").replace(f"V{voxels}", f"V{vertices}")
    return text


def _of_columns(run: Finished) -> list[str]:
    if run.loadings is None:
        return []
    captions = run.result.captions
    sign = f"The sign of a {captions.column} is arbitrary, but the same in all views."
    sets = {images.view for images in run.result.images.values() if images.drawn}
    columns = [view.view for view in run.space.views if view.name not in sets]
    kinds = dict.fromkeys(view.source for view in columns)
    sentences = [
        f"{captions.meaning} {sign}" if captions.sign else captions.meaning,
        *(REPORTS[kind].READING for kind in kinds),
        MIXED if any(view.maps_file and view.is_image for view in columns) else "",
    ]
    return [text for text in sentences if text]


def _of_sets(run: Finished) -> list[str]:
    drawn = [images for images in run.result.images.values() if images.drawn]
    captions = dict.fromkeys(images.caption for images in drawn)
    on_meshes = {run.space.mesh_of(images.view) is not None for images in drawn}
    ways = ((False, SETS), (True, SURFACES))
    return [*captions, *(text for on_mesh, text in ways if on_mesh in on_meshes)]
