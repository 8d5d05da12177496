"""The components that a run found, as the templates of a next study."""

import gzip
from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path

import nibabel as nib
import numpy as np

from consortium.base.atomic import write_bytes, write_text
from consortium.errors import DataError
from consortium.report.comparison import (
    ComparedRun,
    component_names,
    found_components,
    read_outcome,
)
from consortium.space.atlas import read_image, table_of
from consortium.space.templates import DENSE, read_dense

HOME_PAGE = "networks.html"
"""Page of a folder that must not leave its hospital."""
_ENDS = ".nii", ".nii.gz"


def write_templates(folder: Path, target: Path) -> tuple[int, ...]:
    """Write the maps that were found as one image, or as dense maps, without privacy loss.

    The names of the maps of an image are written to a table next to it, which `read_map_names`
    reads.

    Raises DataError if the run found no component, its maps can't be read, or a file can't be made
    there. Raises OutputError if the folder has no result, or a file can't be written.

    Parameters
    ----------
    folder : Path
        Output folder of a run with component maps.
    target : Path
        A new file next to the next study's file.

    Returns
    -------
    tuple of int
        Numbers of the written components, from 1, in their order.
    """
    for path in (target, table_of(target)):
        if path.exists():
            raise DataError(f"{path} exists already. Name another file, or remove it.")
    if (folder / HOME_PAGE).exists():
        raise DataError(
            f"{folder} has a hospital's networks at home, which must not leave it. Name the "
            "output folder of a run."
        )
    outcome = read_outcome(folder)
    if outcome.maps is None:
        raise DataError(
            f"{folder} has no component maps. Name the output of group_ica, ica, pca or "
            "template_networks."
        )
    _check_name(target, outcome)
    write = _dense if outcome.on_mesh else _image
    found = write(outcome, outcome.maps, target)
    if not found:
        raise DataError(f"The run in {folder} found no component. Name another run.")
    if not outcome.on_mesh:
        write_text(table_of(target), _names_table(component_names(outcome), found))
    return tuple(k + 1 for k in found)


def _names_table(names: Mapping[int, str], found: Sequence[int]) -> str:
    """Return a table with a name of its own for each map, as text.

    Parameters
    ----------
    names : mapping of int to str
        Known names of components, by their numbers from 1.
    found : sequence of int
        Written components, from 0.
    """
    given = list[str]()
    for number in found:
        name = " ".join(names.get(number + 1, "").split()) or f"network {number + 1}"
        others = (f"{name} {k}" for k in range(2, len(found) + 1))
        given.append(next(free for free in chain([name], others) if free not in given))
    rows = (f"{index}\t{name}\n" for index, name in enumerate(given, start=1))
    return f"index\tname\n{''.join(rows)}"


def _check_name(target: Path, outcome: ComparedRun) -> None:
    dense = target.name.endswith(DENSE)
    end = DENSE if outcome.on_mesh else _ENDS[-1]
    if dense != outcome.on_mesh or not target.name.endswith(_ENDS):
        raise DataError(
            f"The file for the maps of '{outcome.name}' must end in {end}, got {target}. Rename it."
        )


def _image(outcome: ComparedRun, source: Path, target: Path) -> list[int]:
    """Write the found maps as NIfTI, and return their numbers, from 0; nothing of none."""
    image, values = read_image(source, "component image")
    maps = values if values.ndim == 4 else values[..., None]
    found = found_components(outcome, maps.shape[3])
    if found:
        chosen = nib.Nifti1Image(np.ascontiguousarray(maps[..., found], np.float32), image.affine)
        chosen.header.set_xyzt_units("mm")
        data = chosen.to_bytes()
        packed = target.name.endswith(".gz")
        write_bytes(target, gzip.compress(data, mtime=0) if packed else data)
    return found


def _dense(outcome: ComparedRun, source: Path, target: Path) -> list[int]:
    """Write the found maps as CIFTI, likewise."""
    image, values = read_dense(source)
    found = found_components(outcome, len(values))
    if found:
        names = nib.cifti2.ScalarAxis([f"component {k + 1}" for k in found])
        chosen = nib.Cifti2Image(values[found], (names, image.header.get_axis(1)))
        chosen.nifti_header.set_intent("ConnDenseScalar")
        write_bytes(target, chosen.to_bytes())
    return found
