"""Readers of images as one function each: values and sentences by participant."""

import gzip
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import nibabel as nib
import numpy as np

from consortium.space.atlas import Regions, read_parcellation
from consortium.space.mesh import Mesh, read_mesh
from consortium.space.study_space import Space, ViewSpace
from consortium.study.data_section import DataSection
from consortium.views.fmri import FmriView
from consortium.views.surface import SurfaceView
from site_agent.data.survey import SkippedPerson
from site_agent.images.measures import read_contrasts
from site_agent.images.series import SiteDataset
from site_agent.images.surfaces import read_surfaces
from tests.support.surfaces import write_dlabel
from tests.support.tiny_images import tiny_grid

MESH = "fsaverage5"
PLAIN = {"detrend": "none", "standardize": "none", "minimum_volumes": 2}
NAMES = ("L_front", "L_back", "R_front", "R_back")
Found = tuple[dict[str, np.ndarray], dict[str, str]]
Reader = Callable[..., Found]


def series_of(root: Path, space: Space, **settings: Any) -> Found:
    """Load the series of a data set without any step that changes values."""
    data = DataSection.model_validate(PLAIN | settings)
    dataset = SiteDataset(root, data, space, "subject", root.parent / "cache")
    list(dataset.load())
    survey = dataset.survey
    labels = [subject.label for subject in survey.subjects]
    blocks = [np.array(block) for block in dataset.blocks()] if labels else []
    return dict(zip(labels, blocks, strict=True)), _sentences(survey.skipped)


def voxel_series(root: Path, **settings: Any) -> Found:
    """Load series of voxels, D x T."""
    return series_of(root, Space(tiny_grid()), smoothing=0, **settings)


def mesh_series(root: Path, **settings: Any) -> Found:
    """Load series of vertices."""
    space = Space(None, mesh=cortex())  # type: ignore[arg-type]
    return series_of(root, space, mesh=MESH, **settings)


def parcel_series(root: Path, **settings: Any) -> Found:
    """Load series of parcels."""
    atlas = {"mesh": MESH, "atlas": "seg-Halves.dlabel.nii"}
    space = Space(None, regions(root.parent), mesh=cortex())  # type: ignore[arg-type]
    return series_of(root, space, **atlas, **settings)


def single_images(root: Path, **settings: Any) -> Found:
    """Load 3-D images at voxels."""
    data = DataSection.model_validate(settings)
    view = FmriView.model_validate(
        {"name": "maps", "source": "fmri", "measure": "image", "image": "statmap"}
    )
    values, skipped = read_contrasts(root, data, Space(tiny_grid()), view, 0.0)
    return values, _sentences(skipped)


def surface_maps(root: Path, **settings: Any) -> Found:
    """Load maps at vertices."""
    named = {"name": "cortex", "source": "surface", "mesh": MESH, "values": "thickness"}
    mesh = cortex()
    plain = {"normalize": False, "center": False}
    view = ViewSpace(SurfaceView.model_validate(named | plain), mesh.features, mesh=mesh)
    values, skipped = read_surfaces(root, DataSection.model_validate(settings), view)
    return values, _sentences(skipped)


READERS: dict[str, Reader] = {
    "voxel series": voxel_series,
    "mesh series": mesh_series,
    "parcel series": parcel_series,
    "single images": single_images,
    "surface maps": surface_maps,
}


def _sentences(skipped: Any) -> dict[str, str]:
    found: list[SkippedPerson] = list(skipped)
    return {each.label: each.detail for each in found}


@cache
def cortex() -> Mesh:
    """Mesh of the tests, which nilearn carries."""
    files = DataSection(mesh=MESH).mesh_files
    assert files is not None
    return read_mesh(files, Path())


def regions(folder: Path) -> Regions:
    """Atlas of four parcels, two a hemisphere."""
    path = folder / "seg-Halves.dlabel.nii"
    if not path.exists():
        vertices = cortex().kind.vertices
        keys = [2 * side + 1 + np.arange(vertices) * 2 // vertices for side in range(2)]
        write_dlabel(path, keys, dict(enumerate(NAMES, 1)))
    return read_parcellation(path, cortex())


def patch_header(path: Path, at: int, content: bytes) -> None:
    """Overwrite bytes of a NIfTI-1 header, as nibabel would not write them."""
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rb") as file:
        whole = bytearray(file.read())
    whole[at : at + len(content)] = content
    with opened(path, "wb") as file:
        file.write(whole)


def at_grid(volume: np.ndarray) -> np.ndarray:
    """Return the values of a volume on the study's own grid at its voxels, D (x T)."""
    return volume[tiny_grid().mask]


def reoriented(data: np.ndarray, affine: np.ndarray, code: str) -> nib.Nifti1Image:
    """Return the same image with its axes stored in another order and direction."""
    image = nib.Nifti1Image(data, affine)
    wanted = nib.orientations.axcodes2ornt(code)
    now = nib.io_orientation(affine)
    return image.as_reoriented(nib.orientations.ornt_transform(now, wanted))
