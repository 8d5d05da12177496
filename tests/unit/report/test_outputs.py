"""Files and page of studies of feature vectors, whatever their algorithm and views."""

import base64
import csv
import io
import json
import re
from dataclasses import replace

import nibabel as nib
import numpy as np
import pytest
from matplotlib import pyplot as plt
from PIL import Image

from consortium.algorithms.base import Captions, Result, Table
from consortium.base.formatting import number
from consortium.errors import OutputError
from consortium.report.brain_figures import draw_map
from consortium.report.outputs import first_picture, write_outputs, write_page
from consortium.report.sections.verdict import verdict
from consortium.report.views import eeg, fmri, split_views
from consortium.space.grid import template_grid
from consortium.space.study_space import Space, ViewSpace
from consortium.study.spec import Study
from consortium.views.eeg import EegView
from consortium.views.fmri import FmriView
from consortium.views.table import TableView
from tests.support.html_page import Page
from tests.support.report_samples import blob, finished, finished_maps, sample_report, sample_study

HOSTILE = "Networks <script>alert('x')</script> \" onload=\"alert(1)"
PLACES = ((0.0, -52.0, 28.0), (-8.0, -88.0, 0.0))
CHANNELS = ("Fz", "C3", "cz", "C4", "Pz", "O1")
ERP = {
    "name": "potential",
    "source": "eeg",
    "events": ["target"],
    "channels": CHANNELS,
    "rate": 50,
    "filter": [0.5, 15],
}
IMAGE = {"name": "image", "source": "fmri", "measure": "image", "image": "statmap"}
WHO = {
    "name": "who",
    "source": "table",
    "columns": {"age": {"low": 0, "high": 99}, "<b>sex": {"levels": ["F", "M"]}},
}


@pytest.fixture(scope="module")
def grid_page():
    return template_grid(10.0)


@pytest.fixture(scope="module")
def run(grid_page):
    noise = np.random.default_rng(0).standard_normal((grid_page.features, 2))
    blobs = np.stack([blob(grid_page, place, 10.0) for place in PLACES], axis=1)
    maps = blobs * [20.0, -15.0] + noise
    study = sample_study(title=HOSTILE)
    return finished_maps(study, grid_page, maps, numbers={"noise_deviation": 0.125})


@pytest.fixture(scope="module")
def components(run):
    return run.components.components


@pytest.fixture(scope="module")
def one(run, grid_page):
    """The first component alone."""
    return finished_maps(sample_study(), grid_page, run.result.arrays["maps"][:, :1])


@pytest.fixture(scope="module")
def source_page(run, tmp_path_factory):
    path = write_page(tmp_path_factory.mktemp("page"), run)
    assert path.name == "report.html"
    text = path.read_text(encoding="utf-8")
    assert text.startswith("<!DOCTYPE html>\n")
    return text


@pytest.fixture(scope="module")
def page(source_page):
    return Page(source_page)


def test_sections_stand_in_one_order(run, tmp_path):
    """The summary, what was found and how to read it, what is promised, and how it was done."""
    page = write_page(tmp_path, run).read_text(encoding="utf-8")
    parts = ("findings", "reading", "privacy", "methods")
    places = [page.index("components from about 244 participants")]
    places += [page.index(f'<section id="{name}"') for name in parts]
    assert places == sorted(places)


def test_every_component_has_a_name_three_pictures_and_its_peak(page, components):
    texts = page.values("img", "alt")
    assert len(texts) == 3 * len(components)
    for r in range(len(components)):
        assert f"component-{r + 1}" in page.values("article", "id")
        x, y, z = (f"{mm:.0f}".replace("-", "−") for mm in components.peaks[r])
        assert f"{x}, {y}, {z} mm" in page.text
        assert sum(f"Component {r + 1}: " in words for words in texts) == 3


def test_pictures_are_whole_and_not_blank(page):
    for link in page.values("img", "src"):
        head, content = link.split(",")
        assert head == "data:image/webp;base64"
        with Image.open(io.BytesIO(base64.b64decode(content))) as picture:
            colours = np.asarray(picture.convert("RGB"), dtype=int)
            # Red is drawn: the network is positive, although the second came in upside down.
            assert (colours[..., 0] - colours[..., 2] > 80).sum() > 200


def test_the_page_needs_nothing_from_outside(source_page, page):
    assert "script" not in page.tags
    links = page.values("a", "href") + page.values("link", "href")
    assert links
    assert all(link.startswith(("#", "viewer.html#")) for link in links)
    assert not re.search(r"(?:https?:)?//[\w-]+\.\w", source_page)
    assert not re.search(r"url\(|@import", source_page)
    targets = {value for _, name, value in page.attributes if name == "id"}
    assert {link.partition("#")[2] for link in links} <= targets


def test_a_hostile_title_is_only_text(page):
    assert HOSTILE in page.text
    assert not [name for _, name, _ in page.attributes if name.startswith("on")]


def test_figures_of_the_report_are_on_the_page(page):
    report = sample_report(sample_study())
    for guarantee in (report.guarantees.coalition, report.guarantees.outsider):
        assert f"ε\u00a0=\u00a0{number(guarantee.epsilon)}" in page.text
    assert "1 November 2026" in page.text
    for site in report.sites:
        assert site.name in page.text
    assert page.text.count("mean_volume") == len(report.releases)
    assert "0.125" in page.text
    assert page.values("html", "lang") == ["en"]


def test_verdict_counts_in_the_singular_too(one):
    assert verdict(one).startswith("1 component from about 244 participants at 3 sites.")
    assert "with 1 colluding site," in verdict(one)
    open_to_all = replace(one, report=one.report.model_copy(update={"scheme": "none"}))
    assert "added no noise" in verdict(open_to_all)


def test_drawing_leaves_pyplot_alone_and_a_map_below_threshold_is_drawn_too(grid_page, components):
    before = plt.get_fignums()
    _, slices = draw_map(
        grid_page, np.zeros(grid_page.features), components.peaks[0], 3.0, "Nothing"
    )
    assert plt.get_fignums() == before
    with Image.open(io.BytesIO(slices.webp)) as picture:
        colours = np.asarray(picture.convert("RGB"), dtype=int)[:, :850]  # the colour bar left out
    assert np.abs(colours[..., 0] - colours[..., 2]).max() < 40


def test_a_folder_that_is_a_file_is_an_output_error(tmp_path, one):
    (tmp_path / "out").write_text("")
    with pytest.raises(OutputError, match="can't be written"):
        write_page(tmp_path / "out", one)


def test_what_privacy_noise_alone_could_make_is_not_drawn(tmp_path, one):
    """A voxel counts if it stands out of its map and of its privacy noise."""
    z = np.abs(one.components.components.maps[:, 0])
    noise = np.full(len(z), 0.5)
    strong = np.argsort(z)[-5:]
    noise[strong] = z[strong]  # their noise is as large as they are
    noise *= one.components.components.noise[0]
    known = replace(one, components=replace(one.components, noise=noise))
    text = write_page(tmp_path, known).read_text(encoding="utf-8")
    count = int(np.count_nonzero(z >= 3.0)) - 5
    assert f"{count} voxels" in text
    assert "z = 0.5" in text.replace("\u00a0", " ")
    assert "ends in _noise" in text


def test_nothing_is_said_of_a_noise_that_is_not_known(source_page):
    assert "Privacy noise in a voxel" not in source_page
    assert "ends in _noise" not in source_page


def test_the_first_picture_is_found_where_there_is_one(run, tmp_path):
    write_page(tmp_path, run)
    address = first_picture(tmp_path)
    kind, coded = address.split(",")
    assert kind == "data:image/webp;base64"
    with Image.open(io.BytesIO(base64.b64decode(coded))) as picture:
        assert picture.width == 990
    (tmp_path / "report.html").write_text("<p>Nothing was found.</p>")
    assert first_picture(tmp_path) == ""


@pytest.fixture(scope="module")
def grid():
    return template_grid(12.0)


@pytest.fixture(scope="module")
def space(grid):
    views = [FmriView(**IMAGE), EegView(**ERP), TableView(**{**WHO, "columns": columns()})]
    sizes = [grid.features, len(views[1].labels), len(views[2].labels)]
    return Space(grid, views=tuple(map(ViewSpace, views, sizes)))


def columns():
    return {"age": {"low": 0, "high": 99}, "sex": {"levels": ["F", "M"]}}


def study(title="Linked <script>alert(1)</script>"):
    views = [IMAGE, ERP, {**WHO, "columns": columns()}]
    changes = {"features": views, "algorithm": "cca", "analysis": {"pairs": 2}, "title": title}
    return Study.model_validate(sample_study().model_dump() | changes)


@pytest.fixture(scope="module")
def result(grid, space):
    generator = np.random.default_rng(0)
    values = 0.01 * generator.standard_normal((space.features, 2))
    values[: grid.features, 0] += blob(grid, (0.0, -52.0, 28.0), 12.0)
    courses = np.exp(-0.5 * ((np.array(space.views[1].view.times) - 0.3) / 0.05) ** 2)
    values[grid.features :, 1][:-2] += np.outer([1, 2, 3, 2, 5, 4], courses).ravel()
    rows = ((1, 0.9, "yes"), (2, -0.25, "no"))
    table = Table("Links <i>.", ("pair", "correlation", "above floor"), rows)
    words = Captions("pair", "One of two pairs is there.", "What a pair changes.")
    return Result(
        {"patterns": values},
        {"floor": 0.2},
        loadings="patterns",
        tables={"pairs": table},
        captions=words,
    )


@pytest.fixture(scope="module")
def written(space, result, tmp_path_factory):
    folder = tmp_path_factory.mktemp("out")
    figures = plt.get_fignums()
    files = write_outputs(folder, finished(study(), space, result))
    assert plt.get_fignums() == figures
    return folder, files


def table(folder, pattern):
    (path,) = folder.glob(pattern)
    with path.open(encoding="utf-8", newline="") as text:
        return list(csv.reader(text, delimiter="\t"))


def test_a_view_of_images_is_written_voxel_by_voxel(written, grid, result):
    folder, files = written
    (path,) = folder.glob("tpl-*/func/*_loadings.nii.gz")
    assert path.relative_to(folder) in files
    assert re.fullmatch(
        r"tpl-[A-Za-z0-9]+_res-12_desc-threehospitalsccaimage_loadings\.nii\.gz",
        path.name,
    )
    image = np.asarray(nib.load(path).dataobj)
    np.testing.assert_array_equal(
        image[grid.mask], result.arrays["patterns"][: grid.features].astype(np.float32)
    )
    about = json.loads(path.with_name(path.name.replace(".nii.gz", ".json")).read_text())
    assert about["Description"] == "What a pair changes."
    assert about["View"]["name"] == "image"


def test_potentials_and_columns_are_written_with_their_names(written, space, grid, result):
    folder, _ = written
    lines = table(folder, "eeg/*_loadings.tsv")
    assert lines[0] == ["channel", "time", "pair-1", "pair-2"]
    times = space.views[1].view.times
    assert lines[1][0] == "Fz"
    assert float(lines[len(times) + 1][1]) == pytest.approx(times[0])
    assert lines[len(times) + 1][0] == "C3"
    values = np.array([[float(x) for x in line[2:]] for line in lines[1:]])
    np.testing.assert_allclose(values, result.arrays["patterns"][grid.features : -2])
    assert [line[0] for line in table(folder, "tables/*who_loadings.tsv")] == [
        "entry",
        "age",
        "sex",
    ]


def test_tables_are_written_and_bids_validators_pass_over_them(written):
    folder, _ = written
    lines = table(folder, "tables/*pairs_results.tsv")
    assert lines == [
        ["pair", "correlation", "above floor"],
        ["1", "0.9", "yes"],
        ["2", "-0.25", "no"],
    ]
    ignored = (folder / ".bidsignore").read_text().split("\n")
    assert {"tpl-*/func/*_loadings.*", "/tables"} <= set(ignored)
    assert json.loads((folder / "dataset_description.json").read_text())["Name"]


def test_component_strengths_are_painted_as_their_maps(grid):
    maps = np.random.default_rng(1).standard_normal((grid.features, 3)).astype(np.float32)
    view = ViewSpace(FmriView(**IMAGE), 3, maps)
    painted = Space(grid, views=(view,)).paint_view(view, np.array([[1.0], [0.0], [-2.0]]))
    np.testing.assert_allclose(painted[:, 0], maps[:, 0] - 2 * maps[:, 2], rtol=1e-5)


def test_views_are_split_where_they_meet(space):
    rows = np.arange(space.features)[:, None]
    parts = split_views(space, rows)
    assert [len(part) for _, part in parts] == [view.size for view in space.views]
    np.testing.assert_array_equal(np.vstack([part for _, part in parts]), rows)


@pytest.fixture(scope="module")
def source(written):
    return (written[0] / "report.html").read_text(encoding="utf-8")


def test_the_page_shows_every_pair_in_every_view(source):
    page = Page(source)
    names = [value for tag, name, value in page.attributes if (tag, name) == ("article", "id")]
    assert names == ["pair-1", "pair-2"]
    texts = [value for tag, name, value in page.attributes if (tag, name) == ("img", "alt")]
    for pair in ("Pair 1", "Pair 2"):
        for what in ("glass brain", "slices", "time series", "topography", "largest entries"):
            assert sum(pair in text and what in text for text in texts) == 1, (pair, what)
    assert "One of two pairs is there." in page.text
    assert "−0.25" in page.text
    assert "Links <i>." in page.text
    assert "What a pair changes." in page.text
    assert "ε" in page.text


def test_the_page_is_self_contained_and_safe(source):
    page = Page(source)
    assert "script" not in page.tags
    assert "i" not in page.tags
    for _, name, value in page.attributes:
        assert name not in ("onload", "onclick")
        if name in ("src", "href"):
            assert value.startswith(("data:image/webp;base64,", "#"))


def test_a_column_that_was_not_found_is_listed_and_not_drawn(space, result, tmp_path):
    words = replace(result.captions, columns_found=(True, False))
    write_outputs(tmp_path, finished(study(), space, replace(result, captions=words)))
    page = Page((tmp_path / "report.html").read_text(encoding="utf-8"))
    assert page.values("article", "id") == ["pair-1", "pair-2"]
    assert not [text for text in page.values("img", "alt") if "Pair 2" in text]
    assert page.text.count("Not distinguishable from the noise") == 1


def test_only_entries_that_stand_out_are_drawn(space, result, tmp_path):
    told = np.zeros(result.arrays["patterns"].shape, dtype=bool)
    told[-1, 0] = True  # 'sex' of the last view
    some = replace(result, arrays={**result.arrays, "told": told}, drawn="told")
    write_outputs(tmp_path, finished(study(), space, some))
    page = Page((tmp_path / "report.html").read_text(encoding="utf-8"))
    assert page.values("img", "alt") == ["Pair 1, who: largest entries sex"]
    assert "exceed noise and chance are not drawn" in page.text


def test_any_algorithm_of_features_has_a_page(space, tmp_path):
    mean = np.random.default_rng(2).standard_normal((space.features, 1))
    only = Result(
        {"mean": mean}, maps="mean", captions=Captions("mean", "", "Mean over all participants.")
    )
    write_outputs(tmp_path, finished(study(), space, only))
    page = Page((tmp_path / "report.html").read_text(encoding="utf-8"))
    assert page.values("article", "id") == ["mean-1"]
    none = Result({}, tables={"nothing": Table("Nothing.", ("a",), ())})
    assert len(write_outputs(tmp_path / "none", finished(study(), space, none))) == 1


def test_channels_of_unknown_places_have_no_topography(space):
    def drawn(**changes):
        view = EegView(**(ERP | changes))
        values = np.random.default_rng(3).standard_normal(len(view.labels))
        drawing = eeg.draw(space, ViewSpace(view, len(values)), values, "X")
        return [picture.text for picture in drawing.pictures]

    assert len(drawn()) == 2
    assert len(drawn(channels=("Fz", "C3", "E128", "C4"))) == 1
    assert len(drawn(channels=("Fz", "C3"))) == 1
    power = drawn(measure="band-power", bands={"theta": (4, 8), "alpha": (8, 13)})
    assert "2 bands" in power[0]
    assert "theta, alpha" in power[1]


def test_a_potentials_heads_are_where_it_peaks(space, result, grid):
    view = space.views[1]
    values = result.arrays["patterns"][grid.features : -2, 1]
    heads = eeg.draw(space, view, values, "Pair 2").pictures[1]
    assert "topography at 300 ms," in heads.text


def test_a_view_of_which_nothing_is_told_has_no_table_of_zeros(space, result, tmp_path):
    values = result.arrays["patterns"].copy()
    values[-len(columns()) :] = 0.0
    told = replace(result, arrays={"patterns": values})
    files = write_outputs(tmp_path, finished(study(), space, told), pages=False)
    assert not list(tmp_path.rglob("*who_loadings.*"))
    assert len([path for path in files if "_loadings." in path.name]) == 2


def test_the_methods_tell_of_single_images_that_they_are_taken_as_they_are(written):
    folder, _ = written
    told = (folder / "methods.md").read_text(encoding="utf-8")
    assert "one image per participant (statmap)" in told
    assert "interpolated linearly at the study's voxels without smoothing or scaling" in told
    assert "trend" not in told
    assert "of the task" not in told


def test_the_page_says_what_a_sum_of_component_maps_is(grid, tmp_path):
    settings = {**IMAGE, "measure": "components", "image": None, "components": "maps.nii.gz"}
    maps = np.stack([blob(grid, (0.0, -52.0, 28.0), 12.0), blob(grid, (0.0, 50.0, 0.0), 12.0)], 1)
    space = Space(grid, views=(ViewSpace(FmriView(**settings), 2, maps),))
    changes = {"features": [settings], "algorithm": "average", "data": {"detrend": "linear"}}
    asked = Study.model_validate(sample_study().model_dump() | changes)
    told = Result({"mean": np.array([[1.0], [-1.0]])}, loadings="mean")
    write_outputs(tmp_path, finished(asked, space, told))
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "The picture shows the sum of these maps, each multiplied by its number" in page
    assert "detrended (linear)" in page
    assert "without smoothing or scaling" not in page


def test_pairs_of_regions_are_a_square_and_a_table_by_name(grid, tmp_path):
    settings = {**IMAGE, "measure": "connectivity", "image": None, "components": "maps.nii.gz"}
    space = Space(grid, views=(ViewSpace(FmriView(**settings), 6),))
    changes = {"features": [settings], "algorithm": "average", "data": {"detrend": "linear"}}
    asked = Study.model_validate(sample_study().model_dump() | changes)
    values = np.array([[0.1], [0.2], [-0.9], [0.3], [0.0], [0.4]])
    write_outputs(tmp_path, finished(asked, space, Result({"mean": values}, loadings="mean")))
    lines = table(tmp_path, "tables/*image_loadings.tsv")
    assert [line[0] for line in lines[1:3]] == ["network1-network2", "network1-network3"]
    assert lines[3] == ["network1-network4", "-0.9"]
    assert not list(tmp_path.rglob("*.nii.gz"))
    page = Page((tmp_path / "report.html").read_text(encoding="utf-8"))
    (shown,) = page.values("img", "alt")
    assert "largest pairs network1-network4, network3-network4" in shown
    assert "Fisher's z of the correlation of the time series of every two maps" in page.text
    np.testing.assert_array_equal(
        fmri.edge_matrix(values[:, 0])[[0, 3, 2], [3, 2, 2]], [-0.9, 0.4, 0]
    )
