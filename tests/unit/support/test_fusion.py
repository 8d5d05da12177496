"""Linked images and EEG: the links are those asked for, and the files lead back to them."""

import json
from pathlib import Path

import nibabel as nib
import numpy as np
import pytest
from scipy.linalg import subspace_angles

from consortium.errors import OutputError
from tests.support.fusion import CORRELATIONS, fusion_arrays, linked_profiles, waves
from tests.support.fusion_bids import make_fusion_consortium
from tests.support.fusion_person import CONTRAST, ELECTRODES, FusionRecipe
from tests.support.recordings import WRITERS

SMALL = FusionRecipe(("north", "east", "south", "west"), 6, 3, volumes=20, trials=6, one_sided=3)


def test_profiles_are_linked_source_by_source_only() -> None:
    first, second = linked_profiles(np.random.default_rng(0), CORRELATIONS, 200_000)
    joint = np.corrcoef(first, second)
    rank = len(CORRELATIONS)
    np.testing.assert_allclose(joint[:rank, rank:], np.diag(CORRELATIONS), atol=0.01)
    np.testing.assert_allclose(joint[:rank, :rank], np.eye(rank), atol=0.01)
    np.testing.assert_allclose(joint[rank:, rank:], np.eye(rank), atol=0.01)
    np.testing.assert_allclose([first.var(), second.var()], 1, atol=0.01)


def test_the_views_have_the_sizes_of_the_dissertation() -> None:
    made = fusion_arrays(np.random.default_rng(0), subjects=7)
    assert [view.shape for view in made.views] == [(2500, 7), (6360, 7)]
    assert made.image_sources.shape == (2500, 5)
    assert made.potential_sources.shape == (6360, 5)


def test_canonical_correlations_of_the_views_are_the_truth() -> None:
    sizes = {"side": 12, "channels": 6, "times": 36}
    made = fusion_arrays(np.random.default_rng(1), subjects=20_000, noise=0.02, **sizes)
    bases = []
    for view, sources in zip(made.views, (made.image_sources, made.potential_sources), strict=True):
        left, _, right = np.linalg.svd(view, full_matrices=False)
        assert subspace_angles(left[:, :5], sources).max() < 0.05
        bases.append(right[:5])
    found = np.linalg.svd(bases[0] @ bases[1].T, compute_uv=False)
    np.testing.assert_allclose(found, made.correlations, atol=0.03)


def test_noise_is_relative_to_the_signal() -> None:
    quiet = fusion_arrays(np.random.default_rng(2), subjects=500, noise=0.0)
    loud = fusion_arrays(np.random.default_rng(2), subjects=500, noise=0.5)
    for before, after in zip(quiet.views, loud.views, strict=True):
        assert np.linalg.norm(after - before) / np.linalg.norm(before) == pytest.approx(0.5, 0.1)


def test_no_two_potentials_are_alike() -> None:
    courses = waves(np.linspace(0, 0.8, 200), 6)
    likeness = np.corrcoef(courses) - np.eye(6)
    assert np.abs(likeness).max() < 0.9


@pytest.mark.parametrize("wrong", [(), (1.2,), (0.5, np.nan)])
def test_correlations_that_are_none_are_refused(wrong) -> None:
    with pytest.raises(ValueError, match="between -1 and 1"):
        linked_profiles(np.random.default_rng(0), wrong, 3)


# -- on disk -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory):
    return make_fusion_consortium(tmp_path_factory.mktemp("fusion") / "made", SMALL)


def test_each_site_holds_its_own_format(made) -> None:
    for folder, ending in zip(made.sites.values(), WRITERS, strict=True):
        names = [path.name for path in folder.rglob(f"*_eeg{ending}")]
        assert len(names) == 4
        assert json.loads((folder / "dataset_description.json").read_text())["BIDSVersion"]


def test_some_persons_have_one_modality_only(made) -> None:
    for folder in made.sites.values():
        kinds = {
            home.name: sorted(each.name for each in home.iterdir()) for home in folder.glob("sub-*")
        }
        both = ["eeg", "func"]
        assert [kinds[f"sub-00{n}"] for n in (1, 2, 3)] == [both, ["eeg"], ["func"]]
        lines = (folder / "participants.tsv").read_text().splitlines()
        assert len(lines) == 1 + SMALL.subjects
        assert lines[0].split("\t") == ["participant_id", "age", "sex", "group"]


def test_the_files_tell_the_profiles(made) -> None:
    profiles = np.load(made.truth / "profiles.npz")
    maps = nib.load(made.truth / "networks.nii.gz").get_fdata()
    inside = np.abs(maps).sum(axis=3) > 0
    for site, folder in made.sites.items():
        for path in folder.rglob(f"*_{CONTRAST}.nii.gz"):
            label = path.name.split("_")[0]
            values = nib.load(path).get_fdata()[inside]
            found = np.linalg.lstsq(maps[inside], values, rcond=None)[0]
            np.testing.assert_allclose(found, profiles[f"{site}_{label}"][0], atol=0.5)


def test_one_seed_leads_to_one_consortium(tmp_path: Path, made) -> None:
    again = make_fusion_consortium(tmp_path / "again", SMALL)
    for site in ("north", "east"):
        files = [p for p in sorted(made.sites[site].rglob("*")) if p.suffix in (".eeg", ".edf")]
        assert files
        for path in files:
            twin = again.sites[site] / path.relative_to(made.sites[site])
            assert path.read_bytes() == twin.read_bytes()
    with pytest.raises(OutputError, match="not an empty folder"):
        make_fusion_consortium(tmp_path / "again", SMALL)


def test_everybody_has_both_if_nobody_is_to_lack_any(tmp_path: Path) -> None:
    recipe = FusionRecipe(("north",), 3, 1, volumes=0, trials=2, one_sided=0)
    folder = make_fusion_consortium(tmp_path / "all", recipe).sites["north"]
    assert len(list(folder.rglob("*_eeg.vhdr"))) == len(list(folder.rglob(f"*{CONTRAST}*"))) == 3
    assert not list(folder.rglob("*_bold*"))
    channels = next(folder.rglob("*_channels.tsv")).read_text().splitlines()
    assert [line.split("\t")[0] for line in channels[1:]] == list(ELECTRODES)
