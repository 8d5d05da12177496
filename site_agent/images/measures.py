"""A participant's functional images as one vector: variability or correlations of regions.

A participant's vector depends only on that participant's images and the study's public maps.
"""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import nibabel as nib
import numpy as np
from numpy.typing import NDArray

from consortium.errors import DataError
from consortium.kernels.dual_regression import centred_and_normed, fisher_z
from consortium.privacy.clipping import column_norms
from consortium.space.grid import Grid
from consortium.space.sampling import sample, voxel_places
from consortium.space.study_space import Space, ViewSpace
from consortium.study.data_section import DataSection
from consortium.study.spec import Study
from consortium.views.fmri import FmriView
from site_agent.data.bids import misplaced_file
from site_agent.data.folders import files_below, foreign_home, homes_in, unread_in
from site_agent.data.names import (
    ENDINGS,
    FIELDS,
    VERSIONS,
    choosing_line,
    entities,
    has_entities,
    has_version,
    is_in_space,
    labels_by,
)
from site_agent.data.scaling import Vector, scale_vector
from site_agent.data.survey import NobodyError, Reason, SkippedPerson, Subject
from site_agent.data.wording import PLAIN_TABLES, SiteTables
from site_agent.engines.base import Engine
from site_agent.images.nifti import (
    COVERAGE,
    GapsError,
    check_orientation,
    open_nifti,
    open_volume,
    read_whole,
)
from site_agent.images.preprocess import TooFewLeftError
from site_agent.images.recordings import volumes_of
from site_agent.images.repetition import seconds_apart
from site_agent.images.series import PersonBlocks, SiteDataset, left_out_for

Courses = NDArray[np.floating[Any]]
_FLAT = 1e-6
"""Relative to the largest time series; smaller variation is float32 rounding."""
Outcome = Vector | SkippedPerson


def measure_images(
    source: Path,
    study: Study,
    space: Space,
    view: ViewSpace[FmriView],
    cache: Path,
    engine: Engine,
    tables: SiteTables = PLAIN_TABLES,
) -> tuple[dict[str, Vector], list[SkippedPerson]]:
    """Compute a view's vectors from a data set's images.

    Raises DataError if no participant has an image, or the component maps are not independent.

    Parameters
    ----------
    source : Path
        The site's data set.
    study : Study
        Its ``data`` defines the preparation of series.
    space : Space
        The study's.
    view : ViewSpace
        Space of one of its fMRI views.
    cache : Path
        The site's folder for preprocessed blocks.
    engine : Engine
        Engine on which images are prepared and measured.
    tables : SiteTables
        Settings of the site's own tables.

    Returns
    -------
    vectors : dict of str to array, shape (D_view,)
        By participant's label, without ``sub-``. NaN where a value is missing.
    skipped : list of Skipped
        All other participants.
    """
    settings = view.view
    if settings.measure == "image":
        vectors, skipped = read_contrasts(
            source,
            data=study.data,
            space=space,
            view=settings,
            gaps=study.gaps_of(settings),
            accept_unoriented=tables.accept_unoriented,
        )
        return _finished(vectors, skipped, settings, source)
    data = SiteDataset(
        source=source,
        data=study.data,
        space=space,
        unit="subject",
        cache=cache,
        engine=engine,
        tables=tables,
    )
    unmix = _unmixing(view) if view.components is not None else None
    survey = data.survey
    skipped = list(data.survey.skipped)
    if data.empty:
        raise NobodyError(data.empty)
    vectors = {}
    work = partial(_measured, settings, unmix)
    everybody = (data.person(number) for number in range(len(survey.subjects)))
    for subject, outcome in zip(
        survey.subjects, engine.map(work, everybody, data.largest), strict=True
    ):
        if isinstance(outcome, SkippedPerson):
            skipped.append(outcome)
        else:
            vectors[subject.label] = outcome
    return _finished(vectors, skipped, settings, source)


def amplitude(courses: Courses) -> Vector:
    """Return the variance over time of each time series of an image (D x T), shape (D,)."""
    return np.asarray(courses.var(axis=1, dtype=np.float64))


def band_energy(courses: Courses, step: float, band: tuple[float, float]) -> Vector:
    """Return the fraction of each course's variance in a band of frequencies, shape (D,).

    By Parseval's theorem the parts of all frequencies add up to the variance. The square root is
    the amplitude of low-frequency fluctuations of Y.-F. Zang et al., Brain Dev. 29, 2007, up to
    their factor for the number of frequencies.

    Parameters
    ----------
    courses : array, shape (D, T)
    step : float
        Seconds from volume to volume.
    band : (float, float)
        Lowest and highest frequency in Hz, both included.
    """
    volumes = courses.shape[1]
    frequencies = np.fft.rfftfreq(volumes, step)
    weights = np.full(len(frequencies), 2.0)
    weights[0] = 0.0  # the mean is not a fluctuation
    if volumes % 2 == 0:
        weights[-1] = 1.0
    inside = (frequencies >= band[0]) & (frequencies <= band[1])
    spectrum = np.abs(np.fft.rfft(courses, axis=1)[:, inside]) ** 2
    return np.asarray(spectrum @ weights[inside] / volumes**2)


def connectivity(courses: Courses) -> Vector:
    """Return a participant's connectivity: Fisher's z of every two courses (R x T).

    Raises DataError if a course does not vary.
    """
    wide = np.asarray(courses, dtype=np.float64)
    sizes = column_norms((wide - wide.mean(axis=1, keepdims=True)).T)
    flat = np.flatnonzero(~(sizes > _FLAT * sizes.max(initial=0.0)))
    if len(flat):
        raise DataError(
            f"time series {flat[0] + 1} does not vary. Check whether the images reach there."
        )
    return fisher_z(centred_and_normed(wide))


def _measured(view: FmriView, unmix: NDArray[np.float64] | None, person: PersonBlocks) -> Outcome:
    """Return a measure's mean over a participant's runs, without joining the runs.

    For a squared measure, it is the root of the mean.
    """
    (subject,) = person.subjects
    try:
        lengths = [volumes_of(run, person.target) for run in subject.runs]
        kind = connectivity if view.is_of_edges else amplitude
        measures: list[Callable[[Courses], Vector]] = [kind] * len(lengths)
        if view.measure == "alff":
            steps = [seconds_apart(run) for run in subject.runs]
            measures = [partial(band_energy, step=step, band=view.band) for step in steps]
            lacking = _out_of_band(subject, lengths, steps, view.band)
            if lacking is not None:
                return lacking
        (block,) = person.blocks()
        courses: Courses = block if unmix is None else unmix @ block
        pieces = np.split(courses, np.cumsum(lengths)[:-1], axis=1)
        found = [measure(piece) for measure, piece in zip(measures, pieces, strict=True)]
        mean = np.average(found, axis=0, weights=lengths)
        return np.asarray(mean if view.is_of_edges else np.sqrt(mean))
    except TooFewLeftError as error:
        return left_out_for(subject, error)
    except DataError as error:
        where = f"{subject.runs[0].bold}: " if view.is_of_edges else ""
        return SkippedPerson(subject.label, "unusable", f"{where}{error}")


def _out_of_band(
    subject: Subject, lengths: Sequence[int], steps: Sequence[float], band: tuple[float, float]
) -> SkippedPerson | None:
    """Raise DataError if a run is too short, or too slow, for the band."""
    for run, length, step in zip(subject.runs, lengths, steps, strict=True):
        where = f"{run.bold} has {length} volumes, {step:g} s apart"
        if band[1] > 0.5 / step:
            detail = (
                f"{where}, which is too slow for a band up to {band[1]:g} Hz. Ask for a lower one."
            )
            return SkippedPerson(subject.label, "unusable", detail)
        frequencies = np.fft.rfftfreq(length, step)[1:]
        if not ((frequencies >= band[0]) & (frequencies <= band[1])).any():
            detail = f"{where}, which is too short for the band of {band[0]:g} to {band[1]:g} Hz."
            return SkippedPerson(subject.label, "too-few-volumes", detail)
    return None


def _unmixing(view: ViewSpace[FmriView]) -> NDArray[np.float64]:
    """Return the least-squares coefficients of all maps' courses in an image, shape (K, D)."""
    maps = np.asarray(view.components, dtype=np.float64)
    scaled = maps / np.maximum(np.linalg.norm(maps, axis=0), np.finfo(float).tiny)
    if np.linalg.matrix_rank(scaled, tol=1e-6) < maps.shape[1]:
        raise DataError(
            f"The component maps of view '{view.name}' depend on each other in the study's mask. "
            "Leave one out."
        )
    return np.asarray(np.linalg.pinv(maps))


def _finished(
    vectors: dict[str, Vector], skipped: list[SkippedPerson], view: FmriView, source: Path
) -> tuple[dict[str, Vector], list[SkippedPerson]]:
    done: dict[str, Vector] = {}
    for label, vector in vectors.items():
        try:
            where = source / f"sub-{label}"
            done[label] = scale_vector(vector, 1.0, view.center, view.normalize, where, gaps=True)
        except DataError as error:
            skipped.append(SkippedPerson(label, "unusable", str(error)))
    return done, skipped


Values = NDArray[np.float64]
_DIGITS = 9
_ROUNDING = 1e-9


def read_contrasts(
    source: Path,
    data: DataSection,
    space: Space,
    view: FmriView,
    gaps: float,
    *,
    accept_unoriented: bool = False,
) -> tuple[dict[str, Values], list[SkippedPerson]]:
    """Read every participant's image whose name ends as the study says.

    Raises NobodyError if no participant has one.

    Parameters
    ----------
    source : Path
        A BIDS data set.
    data : DataSection
        Its ``space`` (an image that names another is ignored) and its other entities.
    space : Space
        The study's.
    view : FmriView
        View of images. A name ends in its ``image`` before ``.nii`` or ``.nii.gz``.
    gaps : float
        Fraction of the entries that a participant may lack. If 0, it is that of `COVERAGE`.
    accept_unoriented : bool, default=False
        Whether the site accepts images that do not state their orientation.

    Returns
    -------
    vectors : dict of str to array, shape (D,)
        Values of the regions or voxels by participant's label. NaN where a value is missing.
    skipped : list of Skipped
    """
    ending = str(view.image)
    vectors: dict[str, Values] = {}
    skipped: list[SkippedPerson] = []
    check = check_nothing if accept_unoriented else check_orientation
    for home in homes_in(source):
        label = home.name.removeprefix("sub-")
        path = contrast_of(home, source, data, ending)
        outcome = (
            _read(path, label=label, space=space, view=view, gaps=gaps, check=check)
            if isinstance(path, Path)
            else path
        )
        if isinstance(outcome, SkippedPerson):
            skipped.append(outcome)
        else:
            vectors[label] = outcome
    if not vectors and all(each.reason in ("no-view", "not-chosen") for each in skipped):
        raise NobodyError(
            f"{source} has no sub-*_{ending}.nii[.gz] that the study asks for, in space "
            f"{data.space}. Check path, name and data.space."
        )
    return vectors, skipped


def read_volume(path: Path, grid: Grid, *, zero_is_missing: bool = False) -> Values:
    """Read a 3-D image at the study's voxels, interpolated linearly, shape (D,).

    First-level analyses write NaN outside their mask. A voxel's value is the weighted mean of the
    image's finite values around it, and NaN where these have less than half of the weight. Raises
    DataError if the image can't be used, or is zero in the whole mask.

    Parameters
    ----------
    zero_is_missing : bool
        Treat a value of exactly 0 as missing.
    """
    image = open_volume(path, grid)
    volume = read_whole(path, image).reshape(image.shape[:3])
    places = np.round(voxel_places(image.affine, grid), _DIGITS)  # the last voxel is inside
    sampled = np.isfinite(volume)
    if zero_is_missing:
        sampled &= volume != 0
    weights = sample(sampled.astype(np.float64), places, order=1)
    values = sample(np.where(sampled, volume, 0.0).astype(np.float64), places, order=1)
    if not values.any():
        found = "zero at every finite value" if weights.any() else "without any finite value"
        if zero_is_missing and not weights.any():
            found = "without any finite value other than 0"
        raise DataError(f"{path} is {found} in the study's mask. Check image and mask.")
    return _over_weights(values, weights)


def _over_weights(sums: Values, weights: Values) -> Values:
    """Return the weighted means, and NaN where less than half of the weight is present."""
    whole = np.where(weights > 1 - _ROUNDING, 1.0, weights)
    known = whole >= 0.5 - _ROUNDING
    return np.asarray(np.divide(sums, whole, out=np.full(sums.shape, np.nan), where=known))


def contrast_of(home: Path, root: Path, data: DataSection, ending: str) -> Path | SkippedPerson:
    """Return a participant's one image with an ending, or why they have none.

    Parameters
    ----------
    home, root : Path
        The participant's folder, and the data set.
    ending : str
        As for `read_contrasts`.
    """
    label = home.name.removeprefix("sub-")
    foreign = foreign_home(home, root)
    if foreign is not None:
        return SkippedPerson(label, "unusable", foreign)
    images = [path for path in files_below(home, root) if _ends(path, ending)]
    found = [path for path in images if _fits(path, data)]
    strange = misplaced_file(home, found)
    if strange is not None:
        return SkippedPerson(label, "unusable", strange)
    if len(found) == 1:
        return found[0]
    if found:
        detail = f"{home} has {len(found)} images *_{ending}, where one is required. "
        return SkippedPerson(label, "unusable", detail + _tell_apart(found))
    any_recording = any(_fits(path, data.of_any_recording) for path in images)
    reason: Reason = "not-chosen" if any_recording else "no-view"
    near = _near(images, data) + unread_in(home, root)
    return SkippedPerson(label, reason, f"{home} has no image *_{ending}.{near}")


def _ends(path: Path, ending: str) -> bool:
    first, dot, _ = path.name.partition(".nii")
    return bool(dot) and first.endswith(f"_{ending}")


def _tell_apart(found: Sequence[Path]) -> str:
    """Return the remedy for several images: the line of the study that chooses one of them."""
    for key in (*FIELDS, *VERSIONS):
        labels = sorted(filter(None, labels_by(found, key)))
        if labels:
            named = ", ".join(f"{key}-{label}" for label in labels)
            line = choosing_line(key, labels[0])
            return f"They have {named}. Write '{line}' in the study, or remove files."
    return "Write more of the end as 'image' in the study, or remove files."


def _near(images: Sequence[Path], data: DataSection) -> str:
    """Return the names of the images with the right end that are in another space."""
    spaces = sorted({entities(path).get("space", "") for path in images} - {data.space, ""})
    if not spaces:
        return ""
    named = ", ".join(f"space-{space}" for space in spaces)
    return f" Its images are in {named} instead of space-{data.space}."


def check_nothing(path: Path, image: nib.Nifti1Image) -> None:
    """Accept any image, where a site accepts images without a stated orientation."""


def _read(
    path: Path,
    label: str,
    space: Space,
    view: FmriView,
    gaps: float,
    check: Callable[[Path, nib.Nifti1Image], None],
) -> Values | SkippedPerson:
    """Return a participant's vector, or why the image can't be used."""
    try:
        check(path, open_nifti(path))
        values = read_volume(path, space.grid, zero_is_missing=view.zero_is_missing)
        _check_coverage(path, values, gaps, stated=bool(gaps and view.gaps))
        if space.regions is not None:
            weights = space.regions.weights
            known = ~np.isnan(values)
            values = _over_weights(weights @ np.where(known, values, 0.0), weights @ (1.0 * known))
            _check_coverage(path, values, gaps, stated=bool(gaps and view.gaps))
    except GapsError as error:
        return SkippedPerson(label, "does-not-fit", str(error))
    except DataError as error:
        return SkippedPerson(label, "unusable", str(error))
    return values


def _check_coverage(path: Path, values: Values, gaps: float, *, stated: bool) -> None:
    needed = 1 - gaps if gaps else COVERAGE
    shown = 1 - float(np.isnan(values).mean())
    if shown < needed - _ROUNDING:
        kind = GapsError if stated else DataError
        raise kind(
            f"{path}: values are required in {100 * needed:.3g} % of the study's mask, and it has "
            f"them in {100 * shown:.3g} %. Recompute it in the study's space."
        )


def _fits(path: Path, data: DataSection) -> bool:
    named = entities(path)
    in_space = "space" not in named or is_in_space(named, data)
    chosen = has_entities(named, data) and has_version(named, data, strict=False)
    return path.name.endswith(ENDINGS) and in_space and chosen
