"""One person's values by parcel, from a CIFTI file of one map (``.pscalar.nii``)."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from consortium.space.mesh import DAMAGED

PARCELS = ".pscalar.nii"


def parcel_lines(path: Path) -> list[str]:
    """Name and value of every parcel, with a tab between; none of a file that is no map of some.

    A number is written so that it is read as the same number again.
    """
    import nibabel as nib  # half a second, which only who has such files should pay

    try:
        image = nib.load(path)
        maps, parcels = (image.header.get_axis(number) for number in (0, 1))
        if not isinstance(parcels, nib.cifti2.ParcelsAxis) or len(maps) != 1:
            return []
        values = np.asarray(image.dataobj, dtype=np.float64)
    except DAMAGED:
        return []
    if values.shape != (1, len(parcels)):
        return []
    names = [str(name) for name in parcels.name]
    pairs = zip(names, values[0].tolist(), strict=True)
    return [f"{name}\t{value!r}" if np.isfinite(value) else f"{name}\tn/a" for name, value in pairs]


def parcel_cells(lines: Sequence[str]) -> dict[str, str]:
    """What `parcel_lines` holds, by parcel; a name that is there twice has nothing."""
    pairs = [line.rsplit("\t", 1) for line in lines]
    many = Counter(name for name, _ in pairs)
    return {name: value for name, value in pairs if many[name] == 1}
