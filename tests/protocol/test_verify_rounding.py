"""Threads, BLAS and processors make no honest centre a liar, and no changed map a good one."""

import shutil
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

import nibabel
import numpy as np
import pytest

from consortium.coordinator.evidence import sign_files
from consortium.coordinator.remake import Remake
from consortium.coordinator.verify import Checkup
from consortium.kernels import separations
from consortium.kernels.spatial_ica import nearest_rotation
from consortium.membership.keys import create_identity
from consortium.verification import replay as replay_module
from consortium.verification.replay import replay
from tests.support.local_consortium import entropy
from tests.support.made_elsewhere import made, verified

ONE = {"OMP_NUM_THREADS": "1"}
TWO = {"OMP_NUM_THREADS": "2"}
OTHER = {"OMP_NUM_THREADS": "1", "OPENBLAS_CORETYPE": "Prescott"}
"""A kernel without fused multiplication and addition, which rounds otherwise."""


KINDS = "group_ica", "ica"


@cache
def runs(here: tuple[tuple[str, str], ...]) -> dict[str, Path]:
    return made(KINDS, Path(mkdtemp()), dict(here))


def of(kind: str, here: Mapping[str, str] = TWO) -> Path:
    return runs(tuple(here.items()))[kind]


@cache
def seen(
    here: tuple[tuple[str, str], ...], there: tuple[tuple[str, str], ...]
) -> dict[str, tuple[int, str]]:
    """What `verify` says there of both runs, and of one with a changed voxel."""
    keys = Path(mkdtemp())
    changed = Path(shutil.copytree(runs(here)["group_ica"], keys / "out"))

    def one_voxel(values: np.ndarray) -> None:
        values[tuple(np.argwhere(values)[7])] += 1e-3

    _change(changed, one_voxel)
    folders = {**runs(here), "changed": _signed(changed, keys)}
    return dict(zip(folders, verified(folders.values(), dict(there)), strict=True))


def said_of(kind: str, here: Mapping[str, str], there: Mapping[str, str]) -> tuple[int, str]:
    return seen(tuple(here.items()), tuple(there.items()))[kind]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("here", "there"), [(TWO, ONE), (TWO, OTHER), (OTHER, TWO)], ids=["threads", "kernel", "back"]
)
def test_an_honest_result_is_shown_wherever_it_is_checked(
    kind: str, here: dict[str, str], there: dict[str, str]
) -> None:
    code, said = said_of(kind, here, there)
    assert code == 0, said


def _signed(folder: Path, tmp_path: Path) -> Path:
    keys = Path(mkdtemp(dir=tmp_path))
    sign_files(folder, create_identity(keys, entropy("centre")).key, "small-0001")
    return folder


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    return Path(shutil.copytree(of("group_ica"), tmp_path / "out"))


def _change(folder: Path, act: Callable[[np.ndarray], None]) -> None:
    (path,) = folder.glob("tpl-*/func/*_components.nii.gz")
    image = nibabel.load(path)
    values = np.asarray(image.dataobj).copy()
    act(values)
    nibabel.save(nibabel.Nifti1Image(values, image.affine, image.header), path)


@pytest.mark.parametrize("there", [ONE, OTHER], ids=["threads", "kernel"])
def test_a_changed_voxel_contradicts_on_every_machine(there: dict[str, str]) -> None:
    code, said = said_of("changed", TWO, there)
    assert code == 1, said
    assert "_components.nii.gz: does not follow from the releases: it differs in map" in said


def test_maps_in_another_order_are_left_open(copy: Path, tmp_path: Path) -> None:
    def turned(values: np.ndarray) -> None:
        values[:] = values[..., ::-1].copy()

    _change(copy, turned)
    verdict = Checkup(_signed(copy, tmp_path)).run()
    assert verdict.code == 2, verdict.lines()
    assert "in sign or order of maps, by no more" in "\n".join(verdict.lines())


def test_a_picture_that_was_exchanged_is_named(copy: Path, tmp_path: Path) -> None:
    data = (copy / "report.html").read_bytes()
    place = data.index(b"base64,") + 1000
    other = b"B" if data[place : place + 1] == b"A" else b"A"  # a digit of base64, too
    changed = data[:place] + other + data[place + 1 :]
    (copy / "report.html").write_bytes(changed)
    verdict = Checkup(_signed(copy, tmp_path)).run()
    assert verdict.code == 2, verdict.lines()
    assert "report.html: has pictures" in "\n".join(verdict.lines())


def _unstable(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let rounding choose axes again, as it does in an analysis that is ill conditioned."""
    true = separations.varimax

    def rotation(loadings: np.ndarray) -> np.ndarray:
        seed = int(abs(float(loadings[0, 0])) * 1e17) % 2**31
        noise = np.random.default_rng(seed).standard_normal((loadings.shape[1],) * 2)
        return np.asarray(true(loadings) @ nearest_rotation(np.eye(len(noise)) + 0.01 * noise))

    monkeypatch.setattr(separations, "varimax", rotation)


def test_what_rounding_makes_of_an_ill_conditioned_analysis_is_no_fraud(
    copy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _unstable(monkeypatch)
    true = Remake._publish
    remakes: list[Remake] = []

    def publish(self: Remake, folder: Path, done: replay_module.Replayed, *, pages: bool) -> None:
        remakes.append(self)
        true(self, folder, done, pages=pages)

    monkeypatch.setattr(Remake, "_publish", publish)
    Checkup(copy).run()
    first = remakes[0]
    true(first, copy, replay(first.agreement, first.rounds, 77), pages=True)
    verdict = Checkup(_signed(copy, tmp_path)).run()
    assert verdict.code == 2, verdict.lines()
    assert "by no more than rounding can make" in "\n".join(verdict.lines())

    def one_map(values: np.ndarray) -> None:
        values[..., 0] = np.roll(values[..., 0], 1, axis=0)

    _change(copy, one_map)
    assert Checkup(_signed(copy, tmp_path)).run().code == 1
