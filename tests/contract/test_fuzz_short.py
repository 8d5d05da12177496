"""Nearly sound inputs for every parser, as many as seconds allow; ``tests.long.fuzz`` has more."""

import logging
import warnings
from pathlib import Path

import nibabel as nib
import numpy as np
import pytest

from consortium.engine.kept_round import Kept
from consortium.engine.transcript import Transcript
from consortium.errors import (
    ConfigurationError,
    ConsortiumError,
    DataError,
    OutputError,
    StudyError,
)
from consortium.exchange.credentials import SftpCredentials, load_credentials
from consortium.membership.roster import found_roster, read_roster, save_roster
from consortium.space.grid import mask_grid
from tests.long.fuzz import all_targets
from tests.long.fuzz_mutations import Make
from tests.long.fuzz_run import key_of, public_of
from tests.long.fuzz_targets import SECONDS, Outcome, Target, fuzz, keep

SEED, SHARE, FEWEST = 20261121, 0.001, 60
SIGNED = {"study's signature", "contribution with its vectors"}
"""Any change of these breaks the signature or the seal; most are refused for their form before."""


def test_every_parser_ends_in_a_value_or_a_declared_error(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.CRITICAL)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        outcomes = [
            fuzz(target, max(FEWEST, round(SHARE * target.inputs)), SEED)
            for target in all_targets(tmp_path)
        ]
    assert {each.name: list(each.findings) for each in outcomes if each.findings} == {}
    assert sum(each.inputs for each in outcomes) > 8_000
    barred = {each.name for each in outcomes if each.accepted == 0}
    assert barred <= SIGNED, "no mutant gets through: what lies behind the first check is unseen"


def _target(parse: object) -> Target:
    make: Make = lambda rng: rng.randbytes(4)  # noqa: E731
    return Target("one", 10, make, parse)  # type: ignore[arg-type]


def _broken(_: bytes) -> None:
    raise KeyError("no such field")


def _endless(_: bytes) -> None:
    while True:
        pass


def _declared(_: bytes) -> None:
    raise ConsortiumError("It is malformed. Discard it.")


def test_a_parser_that_breaks_is_found_and_its_input_kept(tmp_path: Path) -> None:
    outcome = fuzz(_target(_broken), 5, SEED)
    (error,) = outcome.findings
    assert error.startswith("KeyError at test_fuzz_short.py")
    keep(outcome, tmp_path)
    (kept,) = tmp_path.glob("*.bin")
    assert kept.read_bytes() == outcome.findings[error]


def test_a_parser_that_hangs_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    assert SECONDS == 1.0
    monkeypatch.setattr("tests.long.fuzz_targets.SECONDS", 0.05)
    (error,) = fuzz(_target(_endless), 1, SEED).findings
    assert error.startswith("OvertimeError")


def test_a_declared_error_is_a_refusal() -> None:
    outcome = fuzz(_target(_declared), 7, SEED)
    assert (outcome.inputs, outcome.refused, outcome.accepted) == (7, 7, 0)
    assert outcome.findings == {}


def test_one_seed_makes_one_set_of_inputs() -> None:
    def given(seed: int) -> list[bytes]:
        seen: list[bytes] = []
        fuzz(_target(seen.append), 20, seed)
        return seen

    assert given(1) == given(1) != given(2)


def test_counts_of_two_processes_add_up() -> None:
    first, second = (Outcome("one", 10, 4, 1, 1.0, slowest, {}) for slowest in (0.1, 0.3))
    first.add(second)
    assert (first.inputs, first.refused, first.accepted, first.slowest) == (20, 8, 10, 0.3)


# -- found by the long walk --------------------------------------------------------------


def test_credentials_that_name_what_no_disk_can_hold(tmp_path: Path) -> None:
    path = tmp_path / "credentials.yaml"
    path.touch(mode=0o600)
    for name, message in (("a" * 5000, "known_hosts"), ('"\\0"', "is not YAML")):
        path.write_text(f"known_hosts: {name}\npassword: x\n")
        with pytest.raises(ConfigurationError, match=message):
            load_credentials(path, SftpCredentials)


@pytest.mark.parametrize("header", [b"{'descr': '<f8', 'fortran_", b"{'descr': (" + b" " * 15])
def test_transcript_whose_numbers_have_half_a_header(header: bytes, tmp_path: Path) -> None:
    transcript = Transcript(tmp_path)
    transcript.append(
        Kept(1, "pca", "second_moment", (0,), np.arange(5, dtype=np.uint64), bytes(32))
    )
    path = tmp_path / "round-00001.npy"
    path.write_bytes(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header)
    with pytest.raises(OutputError, match="damaged"):
        list(transcript.rounds())


def test_roster_with_a_number_that_can_not_be_signed(tmp_path: Path) -> None:
    path, key = tmp_path / "roster.yaml", key_of("centre")
    save_roster(path, found_roster(public_of("centre")), key)
    path.write_text(path.read_text().replace("serial: 1", f"serial: {1 << 64}"))
    with pytest.raises(StudyError, match="is not a roster"):
        read_roster(path)


@pytest.mark.parametrize("kind", [[("R", "u1"), ("G", "u1"), ("B", "u1")], "c8"])
def test_mask_that_does_not_hold_real_numbers(kind: object, tmp_path: Path) -> None:
    values = np.ones((3, 3, 3), dtype=np.dtype(kind))  # type: ignore[call-overload]
    nib.save(nib.Nifti1Image(values, np.eye(4)), tmp_path / "mask.nii")
    with pytest.raises(DataError, match="does not contain real numbers"):
        mask_grid(tmp_path / "mask.nii")
