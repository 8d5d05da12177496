"""Cards of maps: a numbered component has the name of the region at its peak."""

import pytest

from consortium.algorithms.base import Result
from consortium.algorithms.findings import ImageSet
from consortium.report.sections.base import map_card
from consortium.report.shown_maps import component_maps, set_maps
from consortium.space.grid import template_grid
from consortium.space.study_space import Space
from tests.support.report_samples import blob, finished, finished_maps, sample_study

PRECUNEUS = (0.0, -52.0, 28.0)


@pytest.mark.parametrize(
    ("label", "title"),
    [("component 1", "Component 1: precuneus"), ("age", "Age"), ("component 2", "Component 2")],
)
def test_a_map_of_a_set_is_named_by_its_region_if_its_label_is_its_number(label, title):
    grid = template_grid(8.0)
    images = ImageSet(blob(grid, PRECUNEUS, 12.0)[:, None], "Maps.", (label,))
    run = finished(sample_study(), Space(grid), Result({}, images={"set": images}))
    (shown,) = set_maps(run, "set", images)
    card = map_card(run, shown, (), ())
    assert card.name == title
    assert any("near precuneus, default network" in text for _, text in card.facts)


def test_a_component_is_named_by_its_region():
    grid = template_grid(8.0)
    run = finished_maps(sample_study(), grid, blob(grid, PRECUNEUS, 12.0)[:, None])
    (shown,) = component_maps(run.components)
    assert map_card(run, shown, (), ()).name == "Component 1: precuneus"
