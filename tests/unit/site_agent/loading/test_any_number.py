"""Whatever number a study states of data and views, it is refused in a sentence or loaded with."""

from pathlib import Path
from typing import Any

import numpy as np
from pydantic import ValidationError

from consortium.errors import ConsortiumError
from consortium.opened_study import OpenedStudy
from consortium.space.study_space import study_space
from consortium.study.data_section import DataSection
from consortium.views import VIEWS
from site_agent.loading.open import open_dataset
from tests.support.data_fields import EEG, FMRI, TABLE, VIEWED, make_site, study_of
from tests.unit.study.test_extreme_numbers import numeric

VALUES = (0, -1, 1e-300, 1e-12, 1e6, 1e100, 1.7e308, 2**62)
BANDS = ([1e-300, 1e300], [0, 1e-12], [0.01, 1.7e308])
LIMITS = ((-1.7e308, 1.7e308), (0, 1e-300), (0, 5e-324), (1e16, 1e16 + 2), (-1e300, 1e300))
ODD: list[tuple[list[dict[str, Any]], dict[str, Any]]] = [
    *(
        ([view | {name: value}], {})
        for kind, (view, _) in VIEWED.items()
        for name, field in VIEWS[kind].model_fields.items()
        if numeric(field.annotation)
        for value in VALUES
    ),
    *(
        ([], {name: value})
        for name, field in DataSection.model_fields.items()
        if numeric(field.annotation)
        for value in VALUES
    ),
    *(
        ([view], {})
        for band in BANDS
        for view in (
            FMRI | {"measure": "alff", "band": band},
            EEG | {"measure": "band-power", "bands": {"odd": band}},
            EEG | {"filter": band},
        )
    ),
    *(([TABLE | {"columns": {"age": {"low": low, "high": high}}}], {}) for low, high in LIMITS),
]
"""Views and ``data`` with one number that nobody means."""


def test_a_number_of_any_size(tmp_path: Path) -> None:
    site, loaded = make_site(tmp_path / "site"), 0
    for number, (views, data) in enumerate(ODD):
        try:
            study = study_of(views, **data)
            space = study_space(study, site)
            found = open_dataset(site / "bids", OpenedStudy(study, space), tmp_path / str(number))
            for _ in found.load():
                pass
            if not found.people:
                continue
        except (ConsortiumError, ValidationError):
            continue
        loaded += 1
        for block in found.blocks():
            assert np.isfinite(block).all(), f"{views} {data}"
    assert 20 < loaded < len(ODD) - 20
