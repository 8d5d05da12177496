"""One 3-D image per person, such as a contrast of a first-level analysis, on the study's grid."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from consortium.errors import DataError
from consortium.space.grid import Grid
from consortium.space.sampling import sample, voxel_places
from consortium.space.study_space import Space
from consortium.study.data_section import DataSection
from site_agent.data.bids import ENDINGS, entities, has_entities, misplaced_file
from site_agent.data.survey import Reason, SkippedPerson
from site_agent.images.nifti import COVERAGE, open_volume, read_whole

Values = NDArray[np.float64]


def read_contrasts(
    source: Path, data: DataSection, space: Space, ending: str
) -> tuple[dict[str, Values], list[SkippedPerson]]:
    """Read every person's image whose name ends as the study says.

    Parameters
    ----------
    source : Path
        A BIDS data set.
    data : DataSection
        Its ``space``: an image that names another is not taken; and its other entities.
    space : Space
        The study's.
    ending : str
        Before ``.nii`` or ``.nii.gz``.

    Returns
    -------
    vectors : dict of str to array, shape (D,)
        Values of the regions, or else voxels, by person's label.
    skipped : list of Skipped

    Raises
    ------
    DataError
        If nobody has one.
    """
    vectors: dict[str, Values] = {}
    skipped: list[SkippedPerson] = []
    for home in sorted(path for path in source.glob("sub-*") if path.is_dir()):
        label = home.name.removeprefix("sub-")
        images = sorted(home.rglob(f"*{ending}.nii*"))
        images = [path for path in images if path.name.split(".nii")[0].endswith(f"_{ending}")]
        found = [path for path in images if _fits(path, data)]
        strange = misplaced_file(home, found)
        if strange is not None:
            skipped.append(SkippedPerson(label, "unusable", strange))
        elif len(found) == 1:
            outcome = _read(found[0], label, space)
            if isinstance(outcome, SkippedPerson):
                skipped.append(outcome)
            else:
                vectors[label] = outcome
        elif found:
            detail = f"{home} holds {len(found)} images *_{ending}; name more of the end."
            skipped.append(SkippedPerson(label, "unusable", detail))
        else:
            any_recording = any(_fits(path, data.of_any_recording) for path in images)
            reason: Reason = "not-chosen" if any_recording else "no-view"
            skipped.append(SkippedPerson(label, reason, f"{home} holds no image *_{ending}."))
    if not vectors and all(each.reason in ("no-view", "not-chosen") for each in skipped):
        raise DataError(
            f"{source} holds no sub-*_{ending}.nii[.gz] that the study asks for, in space "
            f"{data.space}; check path, name and data.space."
        )
    return vectors, skipped


def read_volume(path: Path, grid: Grid) -> Values:
    """Read a 3-D image at the study's voxels, interpolated linearly, shape (D,).

    What is not finite counts as missing, as first-level analyses write NaN outside their mask:
    it becomes 0, unless too much of the study's mask is missing.

    Raises
    ------
    DataError
        If the image can't be used, or has finite values in less than `COVERAGE` of the mask.
    """
    image = open_volume(path, grid)
    volume = read_whole(path, image).reshape(image.shape[:3])
    places = voxel_places(image.affine, grid)
    there = np.isfinite(volume)
    shown = sample(there.astype(np.float32), places, order=0).mean()
    if shown < COVERAGE:
        raise DataError(
            f"{path} has finite values in {shown:.0%} of the study's mask and must have them in "
            f"{COVERAGE:.0%}; recompute it in the study's space."
        )
    values = sample(np.where(there, volume, 0.0), places, order=1)
    if not values.any():
        raise DataError(f"{path} is zero in the study's mask; check image and mask.")
    return values


def _read(path: Path, label: str, space: Space) -> Values | SkippedPerson:
    try:
        values = read_volume(path, space.grid)
    except DataError as error:
        return SkippedPerson(label, "unusable", str(error))
    return values if space.regions is None else np.asarray(space.regions.weights @ values)


def _fits(path: Path, data: DataSection) -> bool:
    named = entities(path)
    in_space = named.get("space", data.space) == data.space
    return path.name.endswith(ENDINGS) and in_space and has_entities(named, data)
