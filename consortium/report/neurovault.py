"""What NeuroVault asks of a map, under its own names, for the map's sidecar.

Source: fields and choices of NeuroVault's images (neurovault.org/api). All of it is public: the
study file says it, or the privacy report.
"""

from typing import Any

from consortium.report.finished import Finished
from consortium.space.grid import Grid
from consortium.space.mesh import Mesh

_TYPES = {
    "effect": "univariate-beta map",
    "p": "P map (given null hypothesis)",
    "t": "T map",
    "variance": "variance",
    "z": "Z map",
}
"""By the label of the entity ``stat``; other maps are ``other``."""
_TEMPLATES = ("MNI152NLin2009cAsym",)
_MODALITIES = {"surface": "Structural MRI"}


def about_map(run: Finished, place: Grid | Mesh, stat: str = "", view: str = "") -> dict[str, Any]:
    """Fields of a released map that NeuroVault has, as far as they are known.

    Parameters
    ----------
    place : Grid or Mesh
        Its voxels or vertices; NeuroVault names templates of volumes only.
    stat : str
        What the map's values are, as BIDS calls it; empty for none of its names.
    view : str
        The view that the map is of; empty for series of images.
    """
    space, persons = run.study.data.space, _persons(run)
    template = space if space in _TEMPLATES else "GenericMNI"
    named = isinstance(place, Grid) and space.startswith("MNI")
    return {
        "analysis_level": "group",
        "map_type": _TYPES.get(stat, "other"),
        "modality": _modality(run, view),
        **({"number_of_subjects": persons} if persons else {}),
        **({"target_template_image": template} if named else {}),
    }


def _modality(run: Finished, view: str) -> str:
    for each in run.study.features:
        if each.name == view and not each.is_series:
            return _MODALITIES.get(each.source, "Other")
    return "fMRI-BOLD"


def _persons(run: Finished) -> int:
    """Participants at the sites that answered; 0 if units of privacy are not participants."""
    study = run.study
    if study.privacy.unit != "subject" or study.analysis.grouped is not None:
        return 0
    return sum(site.units for site in run.report.sites if site.answered)
