"""A finished study's public result: its images, tables and privacy, in memory."""

from __future__ import annotations

import csv
import html
import json
import math
import re
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import nibabel as nib
import numpy as np
from numpy.typing import NDArray

from consortium.algorithms import REGISTRY
from consortium.algorithms.findings import WITHHELD
from consortium.base.atomic import DAMAGED
from consortium.base.formatting import count
from consortium.errors import DataError, NotReleasedError, OutputError
from consortium.python.privacy import Privacy, privacy_of
from consortium.python.scratch import is_surface
from consortium.report.bids import label
from consortium.report.privacy_report import read_privacy_report
from consortium.space.mesh import SIDE_NAMES, SIDES, Mesh, load_gifti, read_mesh, read_sides
from consortium.space.templates import DENSE
from consortium.views.meshes import BUILT_IN, MESHES, MeshFiles, MeshName

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from nilearn.surface import SurfaceImage
    from pandas import DataFrame

    from consortium.python.scratch import Img

_COMPONENTS = "_components"
_ERRORS = "_stat-stderr"
_MASK = "_mask"
_MISSING = "n/a"
_NONE = "–"
"""Cell of a table without a number."""
_NAMES = {"view", "level", "reference"}
"""Columns of names, also if these look like numbers."""
_NUMERIC = {"integer", "number"}
_INTEGER = re.compile(r"-?\d{1,18}")


@dataclass(frozen=True, eq=False)
class ReleasedImage:
    """An image that a study released, and what its sidecar says.

    Parameters
    ----------
    image : nibabel.Nifti1Image or nilearn.surface.SurfaceImage
        3-D, or 4-D with a volume for each map; on a mesh of shape (vertices, maps). In memory.
    about : mapping
        The sidecar: description, units, which maps were found, how accurate each is expected to be.
    """

    image: nib.Nifti1Image | SurfaceImage
    about: Mapping[str, Any]


@dataclass(frozen=True, eq=False, repr=False)
class StudyResult:
    """The released values of a finished study, for notebooks.

    Made by `open_result`, `simulate` and the estimators. Computations with it add no privacy loss.

    Parameters
    ----------
    privacy : Privacy
        Its privacy loss.
    images : mapping of str to ReleasedImage
        Every image, by its file's name without ``.nii.gz``.
    tables : mapping of str to pandas.DataFrame
        Every table, by its name in the study. pandas is a dependency of nilearn, so no further
        library is needed.
    mask : nibabel.Nifti1Image, optional
        Voxels of the maps. By default those where a map is not zero.
    bare : str, optional
        Mesh of maps that are not in ``images``, because its surfaces were not given.

    Examples
    --------
    Simulated participants with twelve voxels. The four on the left are correlated:

    >>> import nibabel as nib
    >>> import numpy as np
    >>> from consortium import PrivatePCA
    >>> rng, affine = np.random.default_rng(0), np.diag([20.0, 20.0, 20.0, 1.0])
    >>> mask = nib.Nifti1Image(np.ones((3, 2, 2), dtype=np.float32), affine)
    >>> def scan():
    ...     values = rng.normal(size=(3, 2, 2, 30))
    ...     values[0] += 3 * rng.normal(size=30)
    ...     return nib.Nifti1Image(values, affine)
    >>> model = PrivatePCA(1, epsilon=8.0, delta=1e-5, mask=mask)
    >>> result = model.fit([scan() for _ in range(300)]).result_
    >>> left, *rest = np.abs(result.components_img_.get_fdata()[..., 0])
    >>> result.found_, bool(left.min() > np.max(rest))
    ((True,), True)

    Time series of the released map in other participants' scans:

    >>> [series.shape for series in result.transform([scan(), scan()])]
    [(30, 1), (30, 1)]

    A map that was not requested is not available:

    >>> result.contrast("patients")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    consortium.errors.NotReleasedError: The result must have one map of stat 't' of contrast ...
    """

    privacy: Privacy
    images: Mapping[str, ReleasedImage]
    tables: Mapping[str, DataFrame] = field(default_factory=dict)
    mask: nib.Nifti1Image | None = None
    bare: str | None = None

    def __repr__(self) -> str:
        """Return a line with the privacy loss and the numbers of images and tables."""
        parts = (count(len(self.images), "image"), count(len(self.tables), "table"))
        return f"<StudyResult: {', '.join(parts)}; {self.privacy}>"

    def _repr_html_(self) -> str:
        """Return the result for a notebook: privacy loss, maps, images and tables by name."""
        lines = [("privacy loss", str(self.privacy))]
        if self.found_:
            names = self.names_ or ("",) * len(self.found_)
            each = zip(range(1, len(names) + 1), names, self.found_, strict=True)
            maps = ", ".join(f"{k} {name}".strip() for k, name, found in each if found)
            seen = f"{sum(self.found_)} of {len(names)}"
            lines.append(("maps found", f"{seen}: {maps}" if maps else seen))
        lines += [("image", key) for key in self.images]
        lines += [
            ("table", f"{name}: {count(len(table), 'row')}, {', '.join(map(str, table.columns))}")
            for name, table in self.tables.items()
        ]
        rows = (
            f'<tr><th style="text-align:left">{what}</th>'
            f'<td style="text-align:left">{html.escape(text)}</td></tr>'
            for what, text in lines
        )
        return f"<table>{''.join(rows)}</table>"

    @property
    def components_img_(self) -> nib.Nifti1Image | SurfaceImage:
        """Component maps, 4-D with one volume for each, or on a mesh with one column for each.

        Raises
        ------
        NotReleasedError
            If the study released none, or of several views.
        """
        stored = self._components.image
        if is_surface(stored) or stored.ndim == 4:
            return stored
        values = np.asarray(stored.dataobj)[..., None]
        return nib.Nifti1Image(values, stored.affine)

    @property
    def found_(self) -> tuple[bool, ...]:
        """Whether each component stands out of the noise; one that does not means nothing."""
        if not self._names_of_components:
            return ()
        flags = self._components.about.get("Found")
        count = self.components_img_.shape[-1]
        return tuple(bool(each) for each in flags) if flags else (True,) * count

    @property
    def names_(self) -> tuple[str, ...]:
        """Names of the components: of a network that the study names, or of the peak's region.

        Empty text for a component without a name, and an empty tuple if none has one.
        """
        if not self._names_of_components:
            return ()
        return tuple(str(name) for name in self._components.about.get("Names", ()))

    @property
    def expected_(self) -> tuple[float, ...]:
        """Expected correlation of each component with the true network of the population.

        At the maps' own resolution; NaN where none can be estimated.

        Empty if the analysis doesn't report it, or found nothing.
        """
        if not self._names_of_components:
            return ()
        accuracy = self._components.about.get("Accuracy", [])
        return tuple(
            float(each["value"]) if isinstance(each, dict) else _number(each, math.nan)
            for each in accuracy
        )

    @property
    def connectivity_(self) -> NDArray[np.float64]:
        """Correlations of every two networks' time series, R x R, of a study that released them.

        The diagonal is 1, and entries that the noise hides are NaN.

        Raises
        ------
        NotReleasedError
            If it released none.
        """
        table = self._table("connectivity")
        names = [name for name in table.columns if name.isdigit()]
        columns = [[_number(cell, math.nan) for cell in table[name]] for name in names]
        matrix = np.array(columns, dtype=np.float64).T
        np.fill_diagonal(matrix, 1.0)
        return matrix

    def contrast(self, name: str | None = None, stat: str = "t") -> nib.Nifti1Image:
        """Map of a contrast's statistic, of a study whose outcomes are images.

        Parameters
        ----------
        name : str, optional
            The contrast. By default the only one.
        stat : {'effect', 'variance', 't', 'z', 'p', 'q'}

        Raises
        ------
        NotReleasedError
            If there is none, or more than one.
        """
        found = [
            key
            for key in self.images
            if f"_stat-{stat}_" in key
            and (f"_contrast-{name}_" in key if name else "_contrast-" in key)
        ]
        return self.images[self._only(found, f"map of stat '{stat}' of contrast {name!r}")].image

    def refit(
        self,
        formula: str,
        *,
        merge: Sequence[str] = (),
        reference: Sequence[str] = (),
        outcomes: Sequence[str] = (),
    ) -> DataFrame:
        """Compute a model of fewer columns from a `glm` with ``contrasts: all``.

        It has no privacy loss. Unlike those of ``consortium refit``, the false discovery rates
        ``q`` count the tests of this model only.

        Parameters
        ----------
        formula : str
            Terms of the study's formula with + between them, the one of interest first.
        merge : sequence of str
            Levels that count as one, such as ``"ward=b+c"``.
        reference : sequence of str
            Level with which others are compared, such as ``"ward=b"``.
        outcomes : sequence of str
            Patterns of outcomes, such as ``"Left-*"``; all if empty.

        Returns
        -------
        pandas.DataFrame
            A row for each coefficient of the first term and outcome: effect, standard error, t, p,
            q and 95 % interval, in standard deviations within groups and sites.

        Raises
        ------
        NotReleasedError
            If the study has no tables of all coefficients.
        StudyError
            If the formula has other terms, or a level or outcome is unknown.
        OutputError
            If the study did not release the second moment of its columns.
        """
        from consortium.algorithms.glm.kernels.contrast_regression import false_discovery
        from consortium.coordinator.refit import Refit, fit_again
        from consortium.report.coefficients import released_coefficients

        single, errors = (
            _with_names(self._table(name)) for name in ("coefficients", "coefficientserrors")
        )
        asked = Refit(
            formula=formula,
            merge=tuple(merge),
            reference=tuple(reference),
            outcomes=tuple(outcomes),
        )
        model = fit_again(released_coefficients(single, errors), asked)
        table = model.table("", false_discovery(model.p))
        return data_frame(table.columns, table.rows)

    def transform(self, imgs: Sequence[Img]) -> list[NDArray[np.float64]]:
        """Return time series of the released components in given series, by least squares.

        Only the released maps are used. So it adds no privacy loss for the study's participants.
        The result is as private as ``imgs``: it has no noise, and must not be released.

        Parameters
        ----------
        imgs : sequence of path or nibabel.Nifti1Image
            4-D series in the maps' space; brought to the maps' voxels if they have others.

        Returns
        -------
        list of array, shape (T, R)
            For each series, detrended.

        Raises
        ------
        NotReleasedError
            If the study released no components.
        """
        from nilearn.maskers import NiftiMapsMasker, SurfaceMapsMasker  # costs seconds

        maps = self.components_img_
        if is_surface(maps):
            on_mesh = SurfaceMapsMasker(_without_wall(maps), detrend=True, standardize=None)
            return [np.asarray(on_mesh.fit_transform(each), dtype=np.float64) for each in imgs]
        masker = NiftiMapsMasker(
            maps,
            mask_img=self.mask,
            resampling_target="maps",
            detrend=True,
            standardize=None,
            memory=None,
        )
        with warnings.catch_warnings():
            # That series are brought to the maps' voxels is said above, not at every call.
            warnings.filterwarnings("ignore", message="Resampling images at transform time")
            return [np.asarray(masker.fit_transform(img), dtype=np.float64) for img in imgs]

    def plot(self, most: int = 10) -> Figure:
        """Draw the maps that exceed the noise, no more than ``most`` of them.

        Returns
        -------
        matplotlib.figure.Figure
            Three slices through the peak of each; for a result without maps, the numbers of its
            entries with their intervals; a sentence if nothing was found.
        """
        from consortium.python.drawing import draw_result  # matplotlib: only for drawing

        return draw_result(self, most)

    def errors_of(self, key: str) -> nib.Nifti1Image | None:
        """Return standard errors of the maps of an image, if they were released with it."""
        front, _, end = key.partition("_desc-")
        description = end.rpartition("_")[0]
        errors = f"{front}{_ERRORS}_desc-{description}_statmap"
        return self.images[errors].image if errors in self.images else None

    @property
    def components_key(self) -> str:
        """Name of the image of component maps.

        Raises
        ------
        NotReleasedError
            As `components_img_`.
        """
        return self._only(self._names_of_components, "image of components")

    @property
    def _names_of_components(self) -> list[str]:
        return [key for key in self.images if key.endswith(_COMPONENTS)]

    @property
    def _components(self) -> ReleasedImage:
        return self.images[self.components_key]

    def _only(self, found: Sequence[str], what: str) -> str:
        if not found and self.bare:
            raise NotReleasedError(
                f"The result's maps are on the mesh {self.bare}, whose surfaces are in no package. "
                "Open it with open_result(path, surfaces=(left, right)), a .surf.gii file of each "
                "hemisphere."
            )
        if len(found) != 1:
            known = ", ".join(found or self.images)
            raise NotReleasedError(
                f"The result must have one {what}, and it has {len(found) or 'none'}. "
                f"{f'Its images are {known}.' if known else 'It has no image at all.'}"
            )
        return found[0]

    def _table(self, name: str) -> DataFrame:
        if name not in self.tables:
            known = ", ".join(sorted(self.tables)) or "none"
            raise NotReleasedError(f"The result has no table '{name}'. Its tables are {known}.")
        return self.tables[name]


def open_result(
    path: str | Path, surfaces: tuple[str | Path, str | Path] | None = None
) -> StudyResult:
    """Open the output folder of a finished study.

    Everything is read into memory; the folder may go away afterwards.

    Parameters
    ----------
    path : str or Path
        Folder of ``consortium run --out`` or ``consortium simulate --out``.
    surfaces : (path, path), optional
        GIFTI files of the left and the right surface for maps on a mesh, such as TemplateFlow's
        inflated ones (default: the white surfaces of fsaverage5, for its maps).

    Raises
    ------
    OutputError
        If it is not an output folder, or a file of it is damaged.
    DataError
        If ``surfaces`` are not of the maps' mesh.

    Examples
    --------
    >>> open_result("nowhere")
    Traceback (most recent call last):
        ...
    consortium.errors.OutputError: nowhere/privacy_report.json can't be read. Check the output \
folder.
    """
    return read_result(Path(path), None if surfaces is None else [Path(each) for each in surfaces])


def read_result(folder: Path, surfaces: Mesh | Sequence[Path] | None) -> StudyResult:
    """Open an output folder; maps on a mesh need its surfaces, but for those of fsaverage5."""
    report = read_privacy_report(folder / "privacy_report.json")
    images = {_stem(file): _read_image(file) for file in sorted(folder.glob("tpl-*/*/*.nii.gz"))}
    bare = None
    for file in sorted(folder.glob(f"tpl-*/*/*{DENSE}")):
        about = _about(file)
        shapes = _shapes(about, surfaces)
        if shapes is None:
            bare = str(about["SpatialReference"])
        else:
            images[_stem(file)] = _read_surface(file, about, shapes)
    masks = [name for name in images if name.endswith(_MASK)]
    mask = images[masks[0]].image if len(masks) == 1 else None
    tables = {}
    for file in sorted(folder.glob("tables/*_results.tsv")):
        tables[_title(file, report.study)] = read_result_table(file)
    for file in sorted(folder.rglob("*_loadings.tsv")):
        tables[file.name.removesuffix(".tsv")] = read_result_table(file)
    return StudyResult(privacy_of(report), images, tables, mask, bare)


def _read_image(path: Path) -> ReleasedImage:
    try:
        stored: Any = nib.load(path)
        image = nib.Nifti1Image(np.asarray(stored.dataobj), stored.affine, stored.header)
    except (*DAMAGED, EOFError, nib.filebasedimages.ImageFileError) as error:
        raise OutputError(f"{path} is damaged. Copy the folder again.") from error
    return ReleasedImage(image, _about(path))


def _about(path: Path) -> dict[str, Any]:
    """Return the content of an image's sidecar."""
    try:
        found = json.loads(path.with_name(f"{_stem(path)}.json").read_text(encoding="utf-8"))
        return dict(found)
    except DAMAGED as error:
        raise OutputError(f"{path}'s sidecar is damaged. Copy the folder again.") from error


def _shapes(
    about: Mapping[str, Any], surfaces: Mesh | Sequence[Path] | None
) -> Sequence[tuple[NDArray[Any], NDArray[Any]]] | None:
    """Return vertices and triangles of both sides of the maps' mesh, if they are known."""
    name = about.get("SpatialReference")
    if name not in MESHES:
        raise OutputError(f"The result's maps are on a mesh {name!r} that is not known.")
    if surfaces is None and name == BUILT_IN:
        surfaces = read_mesh(MeshFiles(BUILT_IN, None, None), Path())
    if isinstance(surfaces, Mesh):
        if surfaces.name != name:
            return None
        return [(side.coordinates, side.triangles) for side in surfaces.sides]
    return None if surfaces is None else read_sides(cast("MeshName", name), surfaces)


def _read_surface(
    path: Path, about: dict[str, Any], shapes: Sequence[tuple[NDArray[Any], NDArray[Any]]]
) -> ReleasedImage:
    """Read the maps of both hemispheres."""
    from nilearn.surface import InMemoryMesh, PolyMesh, SurfaceImage

    try:
        values = {
            SIDE_NAMES[side]: np.stack(
                [each.data for each in load_gifti(path.with_name(name), side).darrays], axis=1
            )
            for side, name in zip(SIDES, _halves(path), strict=True)
        }
    except (*DAMAGED, DataError) as error:
        raise OutputError(f"{path} is damaged. Copy the folder again.") from error
    parts = {SIDE_NAMES[s]: InMemoryMesh(*each) for s, each in zip(SIDES, shapes, strict=True)}
    return ReleasedImage(SurfaceImage(PolyMesh(**parts), values), about)


def _halves(path: Path) -> list[str]:
    """Return the names of the GIFTI files with the content of a CIFTI file."""
    stem = path.name.removesuffix(DENSE)
    return [stem.replace("_den-", f"_hemi-{side}_den-", 1) + ".func.gii" for side in SIDES]


def _without_wall(image: SurfaceImage) -> SurfaceImage:
    """Return the image with 0 on the medial wall, where maps have no number."""
    from nilearn.surface import SurfaceImage

    parts = {side: np.nan_to_num(values) for side, values in image.data.parts.items()}
    return SurfaceImage(image.mesh, parts)


def read_result_table(path: Path) -> DataFrame:
    """Read a TSV file of a result, with missing values for n/a."""
    try:
        with path.open(newline="", encoding="utf-8") as file:
            heads, *rows = csv.reader(file, delimiter="\t")
            return data_frame(heads, rows)
    except (OSError, ValueError, csv.Error) as error:
        raise OutputError(f"{path} is damaged. Copy the folder again.") from error


def data_frame(heads: Sequence[str], rows: Sequence[Sequence[Any]]) -> DataFrame:
    """Return a table of rows in which n/a is a missing value.

    A column of integers or of other numbers has this type. If numbers of a column are withheld,
    they are missing values, and a column ``state`` after it has the word. A column of names is of
    text.

    Raises
    ------
    ValueError
        If a row has another length.
    """
    import pandas as pd  # costs half a second, which only who has tables should pay

    columns = list(zip(*rows, strict=True)) if rows else [()] * len(heads)
    found: dict[str, Any] = {}
    for head, cells in zip(heads, columns, strict=True):
        kept = [None if _is_missing(cell) else cell for cell in cells]
        words = {cell for cell in kept if isinstance(cell, str) and _number(cell, None) is None}
        if not kept or all(cell is None for cell in kept):
            found[head] = pd.Series([math.nan] * len(kept), dtype=float)
        elif head in _NAMES or words - {WITHHELD} or (words and not _NUMERIC & {*map(_kind, kept)}):
            texts = [cell if cell is None or isinstance(cell, str) else str(cell) for cell in kept]
            found[head] = pd.Series([math.nan if cell is None else cell for cell in texts])
        else:
            found[head] = _numbers(kept)
            if words and (state := f"{head} state") not in heads:
                found[state] = [WITHHELD if cell in words else "reported" for cell in kept]
    return pd.DataFrame(found)


def _numbers(cells: Sequence[Any]) -> Any:
    """Return a column of numbers: of integers if all are, with missing values."""
    import pandas as pd

    values = [_number(cell, None) for cell in cells]
    kinds = {_kind(cell) for cell in cells if cell is not None}
    if kinds == {"integer"}:
        whole = [None if cell is None else int(cell) for cell in cells]
        return pd.Series(whole, dtype="Int64" if None in whole else "int64")
    return pd.Series([math.nan if value is None else value for value in values], dtype=float)


def _kind(cell: Any) -> str:
    """Return whether a cell is an integer, another number or a word."""
    if isinstance(cell, str):
        return (
            "integer"
            if _INTEGER.fullmatch(cell)
            else "word"
            if _number(cell, None) is None
            else "number"
        )
    return "integer" if isinstance(cell, int) else "number" if isinstance(cell, float) else "word"


def _is_missing(cell: Any) -> bool:
    return cell in (_MISSING, _NONE) or (isinstance(cell, float) and math.isnan(cell))


def _with_names(table: DataFrame) -> list[dict[str, Any]]:
    """Return rows in which names of outcomes and levels are text, also if they are numbers."""
    names = {*_NAMES, "coefficient", "entry"}
    kept = table.astype(object).where(table.notna(), _MISSING)
    return [
        {str(column): str(cell) if column in names else cell for column, cell in row.items()}
        for row in kept.to_dict("records")
    ]


def _number(cell: Any, otherwise: Any) -> Any:
    try:
        return float(cell)
    except (TypeError, ValueError):
        return otherwise


def _stem(path: Path) -> str:
    return path.name.removesuffix(".nii.gz").removesuffix(DENSE)


def _title(path: Path, study: str) -> str:
    """Return a table's name, from ``desc-<study><analysis><name>_results.tsv``."""
    name = path.name.removeprefix(f"desc-{label(study)}").removesuffix("_results.tsv")
    for algorithm in sorted(map(label, REGISTRY), key=len, reverse=True):
        if name.startswith(algorithm):
            return name.removeprefix(algorithm)
    return name
