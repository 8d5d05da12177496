"""How well what a demo's studies found agrees with what its scans were made of."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nibabel as nib
import numpy as np
from nilearn.image import resample_img
from numpy.typing import NDArray

from consortium.coordinator.demo.layout import DemoFolders
from consortium.coordinator.run import RunFiles


@dataclass(frozen=True, eq=False)
class FoundMaps:
    """Maps that a study found."""

    image: nib.Nifti1Image
    """4-D, one map after the other."""
    expected: tuple[float, ...] = ()
    """Expected correlation of each with the truth; empty if the analysis tells none."""

    @property
    def count(self) -> int:
        """How many there are."""
        return int(self.image.shape[3])


def found_maps(files: RunFiles) -> FoundMaps:
    """Read the maps that a study wrote, without those that it did not find."""
    path = next(files.out.glob("tpl-*/func/*_components.nii.gz"), None)
    if path is None:  # noise left none that could be written
        return FoundMaps(nib.Nifti1Image(np.zeros((1, 1, 1, 0), np.float32), np.eye(4)))
    image = nib.load(path)
    about = json.loads(Path(str(path).replace(".nii.gz", ".json")).read_text(encoding="utf-8"))
    values = image.get_fdata(dtype=np.float32).reshape(*image.shape[:3], -1)
    kept = np.flatnonzero(about.get("Found", [True] * values.shape[3]))
    accuracy = about.get("Accuracy", [])
    expected = tuple(float(accuracy[k]["value"]) for k in kept) if accuracy else ()
    return FoundMaps(nib.Nifti1Image(values[..., kept], image.affine, image.header), expected)


def agreement(place: DemoFolders, maps: FoundMaps) -> NDArray[np.float64]:
    """Absolute correlation of every true network with every map, in the brain: R x K."""
    grid: dict[str, Any] = {
        "target_affine": maps.image.affine,
        "target_shape": maps.image.shape[:3],
        "force_resample": True,
        "copy_header": True,
    }
    brain = resample_img(
        nib.load(place.truth / "mask.nii.gz"), interpolation="nearest", **grid
    ).get_fdata()
    truth = resample_img(
        nib.load(place.truth / "networks.nii.gz"), interpolation="linear", **grid
    ).get_fdata()
    found = maps.image.get_fdata()
    inside = (brain > 0) & found.any(axis=3)
    both = np.vstack([truth[inside].T, found[inside].T])
    return np.asarray(np.abs(np.corrcoef(both)[: truth.shape[3], truth.shape[3] :]))


def network_names(place: DemoFolders) -> list[str]:
    """Names of the true networks."""
    return list(json.loads((place.truth / "truth.json").read_text(encoding="utf-8"))["networks"])


def score_lines(place: DemoFolders, maps: FoundMaps) -> list[str]:
    """Say of every true network how well the best map agrees with it."""
    if not maps.count:
        return ["No network was found."]
    table = agreement(place, maps)
    kind = " (expected)" if maps.expected else ""
    lines = [f"Correlation of each true network with its best map{kind}:"]
    for name, row in zip(network_names(place), table, strict=True):
        best = int(row.argmax())
        own = int(table[:, best].argmax()) == network_names(place).index(name)
        expected = f"  ({maps.expected[best]:.2f})" if maps.expected and own else ""
        lines.append(f"  {name:<23} {row[best]:.2f}{expected}")
    best_maps = table.max(axis=1)
    lines.append(f"Median {np.median(best_maps):.2f}, least {best_maps.min():.2f}")
    return lines
