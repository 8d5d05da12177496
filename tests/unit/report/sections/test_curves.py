"""Curves of tables: which points are drawn, and with which intervals."""

import io

import numpy as np
import pytest
from PIL import Image

from consortium.algorithms.base import Table
from consortium.algorithms.findings import Finding
from consortium.report.sections.curves import curve_points, draw_table_curves


def table(*rows):
    return Table("A curve.", ("name", "x", "y"), rows, curve=("x", "y"))


def test_only_reported_points_are_drawn():
    found = curve_points(
        table(
            ("a", 0.2, Finding(0.3, 0.1, 0.5)),
            ("b", 0.4, Finding(state="withheld")),
            ("c", "none", Finding(0.5)),
        )
    )
    assert [(x.value, y.value) for x, y in found] == [(0.2, 0.3)]
    assert found[0][1].bounded
    assert not found[0][0].bounded


@pytest.mark.parametrize("rows", [(), (("a", 0.2, Finding(0.9, 0.8, 1.0)),)])
def test_a_point_changes_the_picture(rows):
    empty, drawn = (
        np.asarray(Image.open(io.BytesIO(draw_table_curves([table(*each)]).webp)))
        for each in ((), rows)
    )
    assert (not np.array_equal(empty, drawn)) == bool(rows)
    assert f"{len(rows)} points" in draw_table_curves([table(*rows)]).text
