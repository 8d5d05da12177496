"""Estimators of one data set: what they cost, keep, refuse and say."""

import gc
import math
import pickle
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nibabel as nib
import numpy as np
import pandas as pd
import pytest
from pydantic import BaseModel
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import consortium as cc
from consortium.engine.session import Session
from consortium.errors import DataError, PrivacyError, StudyError
from consortium.privacy.gdp import epsilon_of, mu_of
from site_agent.images.series import SiteDataset
from tests.support.made_up_scans import AFFINE, MASK, SHAPE, scan, scans

EPSILON, DELTA = 4.0, 1e-5


def _pca(**changed: Any) -> cc.PrivatePCA:
    return cc.PrivatePCA(2, **{"epsilon": EPSILON, "delta": DELTA, "mask": MASK, **changed})


def _glm(**changed: Any) -> cc.PrivateGLM:
    columns = {"group": ["a", "b"], "age": (18, 90)}
    wanted = {
        "groups": (20, 20),
        "deviation": 1.0,
        "epsilon": EPSILON,
        "delta": DELTA,
        "mask": MASK,
        "analysis": {"anyway": True},
    }
    return cc.PrivateGLM("group + age", "group", columns, **{**wanted, **changed})


def _people(seed: int, persons: int = 40) -> tuple[list[nib.Nifti1Image], dict[str, list[Any]]]:
    rng = np.random.default_rng(seed)
    imgs = [nib.Nifti1Image(rng.normal(size=SHAPE), AFFINE) for _ in range(persons)]
    ages = [int(age) for age in rng.integers(18, 90, persons)]
    return imgs, {"group": ["a", "b"] * (persons // 2), "age": ages}


def _leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Everything that an object holds, by where it is."""
    if isinstance(value, nib.Nifti1Image):
        yield f"{path}.data", np.asarray(value.dataobj)
    elif isinstance(value, BaseModel):
        yield from _leaves(value.model_dump(), path)
    elif isinstance(value, dict):
        for key, each in value.items():
            yield from _leaves(each, f"{path}/{key}")
    elif isinstance(value, list | tuple):
        for number, each in enumerate(value):
            yield from _leaves(each, f"{path}[{number}]")
    elif isinstance(value, pd.DataFrame):
        yield from _leaves(value.to_dict("list"), path)
    elif hasattr(value, "__dict__"):
        yield from _leaves(vars(value), f"{path}.{type(value).__name__}")
    else:
        yield path, value


def _differ(one: dict[str, Any], other: dict[str, Any]) -> set[str]:
    """Where two fits hold different numbers that are no whole ones: those have too few values."""
    found = set()
    for path in one.keys() & other.keys():
        a, b = one[path], other[path]
        if isinstance(a, np.ndarray):
            found |= {path} if not np.array_equal(a, b) else set()
        elif isinstance(a, float) and isinstance(b, float) and not (a.is_integer() or a != a):
            found |= {path} if a != b else set()
    return found


def _moved(fits: list[dict[str, Any]]) -> set[str]:
    """Where fits of the same persons differ: noise decides, too, what is told at all."""
    first, paths = fits[0], set().union(*fits)
    return {p for p in paths if any(p not in f or not np.array_equal(first[p], f[p]) for f in fits)}


def _fitted(kind: str, seed: int) -> Any:
    if kind == "pca":
        return _pca().fit(scans(30, 100 * seed))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return _glm().fit(*reversed(_people(seed)))


@pytest.mark.parametrize("kind", ["pca", "glm"])
def test_what_two_fits_of_the_same_persons_have_in_common_others_have_too(kind: str) -> None:
    # A number without noise is the same in all fits of the same persons. A number that follows from
    # a noisy count is the same in two fits by chance, so there are three of each.
    ones, others = (
        [dict(_leaves(pickle.loads(pickle.dumps(_fitted(kind, seed))))) for _ in range(3)]
        for seed in (1, 2)
    )
    drawn = _moved(ones) | _moved(others)
    assert any(path.endswith("image.data") for path in drawn)
    assert _differ(ones[0], others[0]) <= drawn


def test_a_number_without_noise_would_be_seen_by_that_test() -> None:
    fits: list[dict[str, Any]] = []
    for seed in (1, 1, 1, 1, 2):
        model = _fitted("pca", seed)
        model.leak_ = float(np.asarray(scans(1, 100 * seed)[0].dataobj).mean())
        fits.append(dict(_leaves(model)))
    assert _differ(fits[0], fits[-1]) - _moved(fits[:-1]) == {".PrivatePCA/leak_"}


def test_a_pickle_holds_no_path_and_no_value_of_the_data(tmp_path: Path) -> None:
    paths = [tmp_path / f"sub-secret{number}_bold.nii" for number in range(20)]
    for number, path in enumerate(paths):
        nib.save(scan(number), path)
    stored = pickle.dumps(_pca().fit(paths))
    assert b"secret" not in stored
    assert str(tmp_path).encode() not in stored
    row = np.asarray(scan(0).dataobj)[0, 0, 0]
    assert row.tobytes() not in stored
    assert row[:2].astype(np.float64).tobytes() not in stored


def test_nothing_of_a_fit_stays_in_memory_or_on_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    earlier = {id(each) for each in _holders()}  # of other tests
    model = _pca().fit(scans(20))
    bad = [*scans(20), nib.Nifti1Image(np.zeros((*SHAPE, 24), dtype=np.float32), AFFINE)]
    with pytest.raises(DataError, match="zero or constant"):
        clone(model).fit(bad)
    assert list(tmp_path.iterdir()) == []
    assert not [each for each in _holders() if id(each) not in earlier]


def _holders() -> list[object]:
    """Everything in memory that holds a site's data or what was computed of them."""
    gc.collect()
    return [each for each in gc.get_objects() if isinstance(each, SiteDataset | Session)]


def test_a_fit_costs_what_was_promised_and_draws_fresh_noise() -> None:
    people = scans(30)
    one, two = _pca().fit(people), _pca().fit(people)
    told = one.privacy_
    assert told.protects
    assert (told.delta, told.unit) == (DELTA, "subject")
    assert 0.98 * EPSILON < told.epsilon <= EPSILON
    assert told.mu == pytest.approx(mu_of(told.epsilon, DELTA), rel=1e-6)
    released = [np.asarray(model.components_img_.dataobj) for model in (one, two)]
    assert not np.array_equal(*released)


def test_fitting_twice_costs_twice_and_says_so() -> None:
    people, model = scans(20), _pca()
    model.fit(people)
    once = model.privacy_so_far_.mu
    with pytest.warns(UserWarning, match="This is fit 2 of this estimator, and each one costs"):
        model.fit(people)
    assert model.privacy_so_far_.mu == pytest.approx(math.sqrt(2) * once)
    assert model.privacy_so_far_.epsilon == pytest.approx(epsilon_of(math.sqrt(2) * once, DELTA))
    assert model.privacy_.epsilon <= EPSILON
    again = pickle.loads(pickle.dumps(model))
    assert again.privacy_so_far_ == model.privacy_so_far_
    assert not hasattr(clone(model), "privacy_")


def test_a_fit_that_fails_after_its_noise_was_drawn_is_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(*_: Any) -> None:
        raise OSError("no space")

    model = _pca()
    monkeypatch.setattr("consortium.python.estimator.publish", fail)
    with pytest.raises(OSError, match="no space"):
        model.fit(scans(20))
    assert model.privacy_so_far_.epsilon == pytest.approx(EPSILON, rel=0.02)


def test_a_seeded_fit_says_that_it_protects_nobody() -> None:
    people = scans(20)
    released = []
    for _ in range(2):
        with pytest.warns(UserWarning, match="This fit protects no participant"):
            model = _pca(random_state=3).fit(people)
        released.append(np.asarray(model.components_img_.dataobj))
        assert model.privacy_.seeded
        assert not model.privacy_.protects
        assert model.privacy_.epsilon == model.privacy_.mu == math.inf
        assert "protects no participant" in str(model.privacy_)
        assert not model.privacy_so_far_.protects
    assert np.array_equal(*released)


def test_a_person_who_is_there_twice_is_refused(tmp_path: Path) -> None:
    people = scans(20)
    with pytest.raises(DataError, match="Image 21 appears twice"):
        _pca().fit([*people, people[3]])
    nib.save(people[0], tmp_path / "one.nii")
    (tmp_path / "other.nii").symlink_to(tmp_path / "one.nii")
    with pytest.raises(DataError, match="appears twice"):
        _pca().fit([tmp_path / "one.nii", tmp_path / "other.nii"])


def test_runs_of_one_person_count_as_one() -> None:
    model = _pca().fit([[scan(number), scan(100 + number)] for number in range(20)])
    assert model.n_participants_ == 20


def test_transform_uses_the_released_maps_alone() -> None:
    model = pickle.loads(pickle.dumps(_pca(epsilon=50.0).fit(scans(60))))
    new = scan(999)
    (courses,) = model.transform([new])
    maps = np.asarray(model.components_img_.dataobj).reshape(-1, 2)
    values = np.asarray(new.dataobj, dtype=np.float64).reshape(-1, 24).T
    line = np.vstack([np.ones(24), np.arange(24)]).T
    left = values - line @ np.linalg.lstsq(line, values, rcond=None)[0]
    expected = np.linalg.lstsq(maps, left.T, rcond=None)[0].T
    assert courses == pytest.approx(expected, abs=1e-3 * np.abs(expected).max())


def test_a_contrast_is_found_where_it_is() -> None:
    imgs, design = _people(5, 400)
    shifted = [
        nib.Nifti1Image(np.asarray(image.dataobj) + 1.0 * (group == "b"), AFFINE)
        for image, group in zip(imgs, design["group"], strict=True)
    ]
    model = _glm(groups=(200, 200), epsilon=20.0, analysis=None).fit(design, shifted)
    effect = np.asarray(model.contrast("effect").dataobj)
    assert effect.shape == SHAPE
    assert effect.mean() == pytest.approx(1.0, abs=0.2)
    table = next(iter(model.result_.tables.values()))
    assert set(table["found"]) == {"yes"}


def test_groups_that_nobody_states_are_counted_and_paid_for() -> None:
    imgs, design = _people(7, 400)
    shifted = [
        nib.Nifti1Image(np.asarray(image.dataobj) + 1.0 * (group == "b"), AFFINE)
        for image, group in zip(imgs, design["group"], strict=True)
    ]
    model = _glm(groups=None, share=0.5, epsilon=20.0, analysis=None)
    assert model.forecast(400)["worth it"][0].startswith("yes")
    with pytest.raises(StudyError, match="Say how many participants"):
        model.forecast()
    model.fit(design, shifted)
    assert model.privacy_.epsilon <= 20.0
    assert np.asarray(model.contrast("effect").dataobj).mean() == pytest.approx(1.0, abs=0.2)
    with pytest.raises(StudyError, match="shares"):
        _glm(groups=(200, 200), share=0.5).fit(design, shifted)


def test_a_slope_needs_no_groups() -> None:
    model = _glm(groups=None, epsilon=20.0).set_params(term="age")
    assert model.forecast(400)["study"][0] == "as it is"


def test_networks_are_found_with_their_expected_accuracy() -> None:
    model = cc.PrivateGroupICA(
        2, epsilon=20.0, delta=DELTA, mask=MASK, analysis={"basis": "voxels", "anyway": True}
    ).fit(scans(60))
    assert len(model.expected_) == model.n_components_ == len(model.found_)
    assert model.plot().axes or model.plot().texts


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (lambda: _pca(epsilon=-1.0), "privacy.epsilon must be"),
        (lambda: _pca(delta=0.7), "privacy.delta must be"),
        (lambda: _pca(analysis={"components": 3}), "analysis: 'components' is set by a parameter"),
        (lambda: _pca(data={"nothing": 1}), "field 'data.nothing' is unknown"),
        (lambda: _pca(mask="nowhere.nii"), "nowhere.nii must be a .nii or .nii.gz file"),
    ],
)
def test_wrong_parameters_are_told_when_fitted_in_one_sentence(made: Any, said: str) -> None:
    model = made()
    with pytest.raises((StudyError, DataError, PrivacyError), match=said) as raised:
        model.fit(scans(3))
    assert "\n" not in str(raised.value)
    with pytest.raises(NotFittedError):
        _ = model.components_img_


def test_wrong_images_and_designs_are_told() -> None:
    imgs, design = _people(1)
    with pytest.raises(DataError, match="sequence of images is empty"):
        _pca().fit([])
    with pytest.raises(DataError, match=r"An image must be .* got a ndarray"):
        _pca().fit([np.zeros((3, 3, 3, 9))])  # type: ignore[list-item]
    with pytest.raises(DataError, match=r"no column 'age'\. There is 'group'."):
        _glm().fit({"group": design["group"]}, imgs)
    with pytest.raises(DataError, match=r"Column 'age' must have .* 40 participants, got 39"):
        _glm().fit({**design, "age": design["age"][1:]}, imgs)
    with pytest.raises(DataError, match="Column 'group' must have only printable"):
        _glm().fit({**design, "group": ["a\tb"] * 40}, imgs)


def test_parameters_are_kept_as_they_were_given() -> None:
    for model in (_pca(), _glm(), cc.PrivateGroupICA(epsilon=1.0, delta=DELTA)):
        copy = clone(model)
        assert copy.get_params().keys() == model.get_params().keys()
        assert copy.set_params(epsilon=7.0).epsilon == 7.0
        assert model.epsilon != 7.0
