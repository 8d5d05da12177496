"""The viewer: it holds what was drawn and nothing else, and lets nothing else run."""

import base64
import gzip
import hashlib
import json
import re
from dataclasses import replace

import nibabel as nib
import numpy as np
import pytest

from consortium.report.finished import finish_result
from consortium.report.viewer import write_viewer
from consortium.space.grid import template_grid
from tests.support.html_page import Page
from tests.support.report_samples import DAY, blob, finished_maps, sample_study

HOSTILE = '</script><script>alert(1)</script> " onload="alert(1)'
PLACES = ((0.0, -52.0, 28.0), (-8.0, -88.0, 0.0))


@pytest.fixture(scope="module")
def run():
    grid = template_grid(12.0)
    noise = np.random.default_rng(0).standard_normal((grid.features, 2))
    maps = np.stack([blob(grid, place, 14.0) for place in PLACES], axis=1) * 20 + noise
    return finished_maps(sample_study(title=HOSTILE), grid, maps)


@pytest.fixture(scope="module")
def source(run, tmp_path_factory):
    return write_viewer(tmp_path_factory.mktemp("viewer"), run).read_text(encoding="utf-8")


def held(source):
    text = re.search(r'<script type="application/json" id="data">(.*?)</script>', source, re.S)
    return json.loads(text[1])


def test_every_value_that_the_page_colours_is_in_the_viewer_and_noise_is_not(run, source):
    for r, told in enumerate(held(source)["maps"]):
        image = nib.Nifti1Image.from_bytes(gzip.decompress(base64.b64decode(told["image"])))
        z = run.components.components.maps[:, r]
        found = np.asarray(image.dataobj)[run.components.grid.mask]
        assert told["threshold"] == 3.0
        np.testing.assert_allclose(found, z, atol=np.ptp(z) / 60_000)
        assert told["ident"] == f"component-{r + 1}"


def test_a_voxel_that_privacy_noise_alone_could_make_is_zero(run, tmp_path):
    noise = np.full(run.components.grid.features, 1e9)
    assert (
        write_viewer(tmp_path, replace(run, components=replace(run.components, noise=noise)))
        is None
    )


def test_a_component_that_was_not_found_is_not_there(run, tmp_path):
    one = replace(run, components=replace(run.components, found=(True, False)))
    source = write_viewer(tmp_path, one).read_text(encoding="utf-8")
    assert [told["ident"] for told in held(source)["maps"]] == ["component-1"]


def test_only_the_two_scripts_of_the_page_may_run_and_none_may_ask_a_server(source):
    page = Page(source)
    policy = page.values("meta", "content")[1]
    scripts = re.findall(r"<script>(.*?)</script>", source, re.S)
    assert len(scripts) == 2
    for script in scripts:
        digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in policy
    assert "default-src 'none'" in policy
    assert "connect-src data:" in policy
    assert "unsafe-inline" not in policy.partition("script-src")[2].partition(";")[0]
    assert page.values("a", "href") == ["report.html"]


def test_a_hostile_title_is_only_text(source):
    page = Page(source)
    assert HOSTILE in page.text
    assert not [name for _, name, _ in page.attributes if name.startswith("on")]
    assert "alert(1)</script> " not in source.replace("&lt;/script&gt;", "")


def test_a_study_without_maps_has_no_viewer(run, tmp_path):
    empty = finish_result(run.study, run.space, replace(run.result, maps=""), run.report, DAY)
    assert write_viewer(tmp_path, empty) is None
    assert not list(tmp_path.iterdir())
