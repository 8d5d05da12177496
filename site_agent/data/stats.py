"""FreeSurfer's stats files, one for each person: regions in lines, measures in columns.

Source: the comment lines of ``aparc.stats`` and ``aseg.stats`` (FreeSurfer 5 to 8), of which
``ColHeaders`` names the columns and ``Measure`` lines hold numbers of the whole brain.
"""

from collections.abc import Sequence

_NAME = "StructName"


def stats_cells(lines: Sequence[str]) -> dict[str, str]:
    """Every number of a file by name.

    A column is called after its region and its measure, as ``insula_ThickAvg`` or
    ``Left-Hippocampus_Volume_mm3``; a number of the whole brain by its own name, as
    ``EstimatedTotalIntraCranialVol``.
    """
    found: dict[str, str] = {}
    headings: list[str] = []
    for line in lines:
        words = line.split()
        if line.startswith("# ColHeaders"):
            headings = words[2:]
        elif line.startswith("# Measure"):
            parts = [part.strip() for part in line.split(",")]
            if len(parts) >= 4:
                found[parts[1]] = parts[3]
        elif words and not line.startswith("#") and len(words) == len(headings):
            row = dict(zip(headings, words, strict=True))
            region = row.pop(_NAME, "")
            found |= {f"{region}_{heading}": value for heading, value in row.items()}
    return found
