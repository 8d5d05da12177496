"""Names that a study gives to places and networks."""

import nibabel as nib
import numpy as np
import pytest

from consortium.errors import DataError
from consortium.opened_study import OpenedStudy
from consortium.report.finished import finish_result
from consortium.report.legend import read_legend
from consortium.report.outputs import write_page
from consortium.space.grid import template_grid
from consortium.space.study_space import Space
from tests.support.html_page import Page
from tests.support.report_samples import DAY, blob, finished_maps, sample_study

CENTRES = {"Precuneus <b>": (0.0, -52.0, 28.0), "Calcarine": (-8.0, -88.0, 0.0)}


@pytest.fixture(scope="module")
def grid():
    return template_grid(12.0)


@pytest.fixture
def folder(tmp_path, grid):
    maps = np.stack([blob(grid, place, 14.0) for place in CENTRES.values()], axis=1)
    labels = np.where(maps.max(axis=1) > 0.4, maps.argmax(axis=1) + 1, 0).astype(np.int16)
    nib.save(grid.image(labels), tmp_path / "atlas.nii.gz")
    nib.save(grid.image(maps.astype(np.float32)), tmp_path / "nets.nii.gz")
    table = "index\tname\n" + "".join(f"{k}\t{name}\n" for k, name in enumerate(CENTRES, start=1))
    for name in ("atlas.tsv", "nets.tsv"):
        (tmp_path / name).write_text(table)
    return tmp_path


def opened(study, folder):
    return OpenedStudy(study, Space(template_grid(12.0)), folder)


def named(**files):
    return sample_study(report=files)


def test_the_page_tells_region_and_network_of_every_peak_as_text(folder, grid, tmp_path):
    study = named(atlas="atlas.nii.gz", networks="nets.nii.gz")
    maps = np.stack([blob(grid, place, 14.0) for place in CENTRES.values()], axis=1)
    run = finished_maps(study, grid, maps + 0.02 * np.random.default_rng(0).normal(size=maps.shape))
    legend = read_legend(opened(study, folder))
    run = finish_result(study, run.space, run.result, run.report, DAY, legend)
    page = Page(write_page(tmp_path, run).read_text(encoding="utf-8"))
    for name in CENTRES:
        assert f"mm (in {name})" in page.text
        assert (
            f"{name} (r\u00a0=\u00a00.9" in page.text or f"{name} (r\u00a0=\u00a01.0" in page.text
        )
    assert "b" not in page.tags


def test_a_map_like_none_of_the_networks_is_called_so(folder, grid):
    networks = read_legend(opened(named(networks="nets.nii.gz"), folder)).networks
    values = blob(grid, (30.0, 50.0, 10.0), 14.0)
    assert networks.most_alike(grid, values) == []
    assert networks.most_alike(grid, -blob(grid, CENTRES["Calcarine"], 14.0)) == []


def test_without_files_there_are_no_names(tmp_path):
    legend = read_legend(opened(sample_study(), tmp_path))
    assert legend.anatomy is None
    assert legend.networks is None


def test_names_must_number_the_maps(folder):
    (folder / "nets.tsv").write_text("index\tname\n1\tonly\n")
    with pytest.raises(DataError, match="one line for each of the 2 maps"):
        read_legend(opened(named(networks="nets.nii.gz"), folder))


@pytest.mark.parametrize("name", ["../atlas.nii.gz", "/etc/passwd"])
def test_a_file_elsewhere_is_refused(folder, name):
    with pytest.raises(DataError, match="not next to the study file"):
        read_legend(opened(named(atlas=name), folder))


def test_names_of_places_make_no_other_study():
    assert named(atlas="atlas.nii.gz").digest == sample_study().digest
    assert sample_study(title="Other").digest != sample_study().digest
