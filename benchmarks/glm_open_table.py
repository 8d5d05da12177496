"""``python -m benchmarks.glm_open_table FILE``: write the open cohort of ``configs/glm-open.yaml``.

The participants are simulated. A table of real ones has the same columns.
"""

import csv
from pathlib import Path

import numpy as np

from benchmarks.timing import command

PERSONS, SITES, REGIONS = 120, 4, 12
_THICKNESS, _DEVIATION = 2.5, 0.2  # mm
_AGE = 45.0, 15.0
_THINNING = -0.02  # standard deviations per year
_SEX, _PATIENT = 0.1, -0.4  # standard deviations


def main(file: Path) -> None:
    """Write simulated participants of four sites, the same ones each time."""
    generator = np.random.default_rng(20_261_127)
    scanners = 0.4 * generator.standard_normal((SITES, REGIONS))
    slopes = _THINNING * generator.uniform(0.5, 1.5, REGIONS)
    with file.open("w", encoding="utf-8", newline="") as lines:
        table = csv.writer(lines, delimiter="\t", lineterminator="\n")
        regions = (f"region{n}" for n in range(1, REGIONS + 1))
        table.writerow(["participant_id", "site", "diagnosis", "age", "sex", *regions])
        for number in range(PERSONS):
            patient, male = generator.random(2) < (0.4, 0.5)
            age = float(np.clip(generator.normal(*_AGE), 18, 90))
            values = scanners[number % SITES] + slopes * (age - _AGE[0]) + _SEX * male
            values += 0.5 * generator.standard_normal() + 0.87 * generator.standard_normal(REGIONS)
            values[: REGIONS // 3] += _PATIENT * patient
            row = [f"sub-open{number:03d}", f"site{number % SITES + 1}"]
            row += [("control", "patient")[int(patient)], f"{age:.1f}", "FM"[int(male)]]
            thickness = (_THICKNESS + _DEVIATION * values).tolist()
            table.writerow([*row, *(f"{value:.3f}" for value in thickness)])


if __name__ == "__main__":
    command(main)
