"""A published result is checked by anybody: every change is found, and a good one is shown."""

import json
import shutil
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import nibabel
import numpy as np
import pytest

from consortium.coordinator.evidence import (
    STUDY_FILE,
    STUDY_FOLDER,
    digests_of,
    keep_evidence,
    sign_files,
)
from consortium.coordinator.provenance import announced_members
from consortium.coordinator.verify import Checkup
from consortium.engine import own_platform
from consortium.exchange import DirectoryExchange
from consortium.membership.keys import create_identity
from consortium.membership.roster import fingerprint
from consortium.privacy.mechanism import Mechanism
from consortium.report import accounting as accounting_module
from consortium.report.privacy_report import read_privacy_report
from consortium.study.reader import read_study
from consortium.verification.verdict import Verdict
from tests.support.finished_run import OPEN, STUDY, Finished, finished
from tests.support.gossip_algorithm import TEXT, register
from tests.support.local_consortium import LocalConsortium, build, conduct, entropy

ROUND = "transcript/round-00002"


@pytest.fixture(autouse=True, scope="module")
def _second_opinion_once() -> Iterator[None]:
    """The second library takes a second for each report, and every report here is the same."""
    with pytest.MonkeyPatch.context() as patch:
        true = accounting_module.cross_check
        known = cache(lambda losses, delta: true(list(losses), delta))
        patch.setattr(accounting_module, "cross_check", lambda m, d: known(tuple(m), d))
        yield


@pytest.fixture(scope="module")
def good() -> Finished:
    """Of a study that leaves scheme and boost to their defaults."""
    return finished(text=STUDY.replace("boost: BOOST, ", ""))


def checked(folder: Path, exchange: Path | None = None, sites: Path | None = None) -> Verdict:
    place = None if exchange is None else DirectoryExchange(exchange)
    return Checkup(folder, sites, place).run()


def published_fingerprints(folder: Path, path: Path) -> Path:
    keys = announced_members((folder / "evidence" / "announcement").read_bytes()).keys
    lines = [f"{name}: {fingerprint(key)}" for name, key in keys.items()]
    path.write_text("\n".join(lines) + "\n")
    return path


def test_a_good_result_is_shown_by_its_folder_alone(good: Finished) -> None:
    verdict = checked(good.out)
    assert verdict.code == 0, verdict.lines()
    assert verdict.shown == {1, 2, 3}
    assert "are confirmed only by the coordinator" in verdict.lines()[0]
    study = read_study(good.out / "evidence" / STUDY_FOLDER / STUDY_FILE)
    assert study.privacy.model_fields_set.isdisjoint({"scheme", "boost"})


def test_a_good_result_is_shown_under_the_hospitals_own_fingerprints(
    good: Finished, tmp_path: Path
) -> None:
    verdict = checked(good.out, sites=published_fingerprints(good.out, tmp_path / "sites.yaml"))
    assert (verdict.code, verdict.findings) == (0, []), verdict.lines()


def test_a_hospital_that_nobody_knows_is_told(good: Finished, tmp_path: Path) -> None:
    sites = published_fingerprints(good.out, tmp_path / "sites.yaml")
    sites.write_text(sites.read_text().replace("north: ", "north: 0000-"))
    verdict = checked(good.out, sites=sites)
    assert verdict.code == 1
    assert "north says that its own is 0000-" in verdict.lines()[0]
    sites.write_text("north: 1\n")
    assert checked(good.out, sites=sites).code == 1


def test_without_attestations_the_exchange_shows_the_sums(good: Finished, tmp_path: Path) -> None:
    found = good.copy(tmp_path)
    shutil.rmtree(found.out / "evidence" / "attestation")
    (found.out / "evidence" / "published").unlink()  # nobody could have signed for these files
    assert checked(found.out).code == 1
    found = good.copy(tmp_path / "again")
    objects = found.exchange / "runs" / "small-0001" / "00002" / "contribution" / "north"
    objects.write_bytes(objects.read_bytes()[:40] + b"\x00" + objects.read_bytes()[41:])
    verdict = checked(found.out, found.exchange)
    assert verdict.code == 2
    assert verdict.shown == {1, 3}
    assert "is not the one that the site signed" in "\n".join(verdict.lines())


def test_the_sums_are_added_again_with_a_lost_site(tmp_path: Path) -> None:
    found = finished("exact", 1, absent="east")
    verdict = checked(found.out, found.exchange)
    assert verdict.shown == {1, 2, 3}
    assert not verdict.contradicted, verdict.lines()
    assert "east has not attested" in "\n".join(verdict.lines())


def _each(root: Path, monkeypatch: pytest.MonkeyPatch) -> Verdict:
    """Play and check a run that releases each site's own answer, but for its maps."""
    register(monkeypatch)
    local = LocalConsortium(build(root, text=TEXT))
    centre = local.centre()
    conduct(centre)
    assert centre.session is not None
    files, plan = local.place.files, centre.session.plan
    keep_evidence(files.out, centre.releases, files.study, plan, len(centre.session.rounds))
    monkeypatch.setattr(Checkup, "_compare_files", lambda *_, **__: set())
    return checked(files.out)


def test_each_sites_own_answer_stands_under_its_own_signature(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    verdict = _each(tmp_path, monkeypatch)
    assert (verdict.code, verdict.shown) == (0, {1, 2, 3}), verdict.lines()


def test_an_answer_that_the_centre_changed_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    true = Mechanism.combine
    monkeypatch.setattr(Mechanism, "combine", lambda *given: true(*given) + np.uint8(1))
    verdict = _each(tmp_path, monkeypatch)
    assert verdict.code == 1
    assert "report of north in round 1 differs from its signature" in verdict.lines()[1]


def test_of_a_numeric_boost_nothing_is_claimed_of_sums() -> None:
    found = finished("10000")
    verdict = checked(found.out, found.exchange)
    assert verdict.code == 2, verdict.lines()
    assert verdict.shown == set()
    assert "depends on the centre's word" in "\n".join(verdict.lines())
    assert not list(found.exchange.glob("runs/*/attestation"))


def test_the_report_says_whether_anybody_can_check_it(good: Finished) -> None:
    told = {
        name: (folder / "README.md").read_text()
        for name, folder in (
            ("exact", good.out),
            ("10000", finished("10000").out),
            ("open", finished("10000", 1, text=OPEN).out),
        )
    }
    shown = [name for name, text in told.items() if "Any party can check the result" in text]
    assert shown == ["exact", "open"]
    assert "Only the coordinator can check" in told["10000"]


@pytest.mark.parametrize("absent", ["", "east"])
def test_a_study_with_open_vectors_is_shown(absent: str) -> None:
    found = finished("10000", 1, absent=absent, text=OPEN)
    verdict = checked(found.out, found.exchange)
    assert verdict.shown == {1, 2, 3}, verdict.lines()
    if not absent:
        assert checked(found.out).code == verdict.code == 0, verdict.lines()
    report = read_privacy_report(found.out / "privacy_report.json")
    assert report.open_vectors
    assert report.guarantees.outsider.epsilon <= report.guarantees.coalition.epsilon
    page = (found.out / "report.html").read_text()
    assert "which are public for recomputing the sums" in page
    (least,) = {r.mu_outsider for r in report.releases if r.stage == "pca"}
    assert report.guarantees.outsider.mu > least


def test_an_open_vector_that_was_changed_is_found_by_its_manifest(tmp_path: Path) -> None:
    found = finished("10000", 1, text=OPEN).copy(tmp_path)
    objects = found.exchange / "runs" / "small-0001" / "00002" / "contribution" / "north"
    data = objects.read_bytes()
    entries = np.load(found.out / f"{ROUND}.npy").nbytes
    objects.write_bytes(data[: entries + 9] + b"\x00\x01" + data[entries + 11 :])
    verdict = checked(found.out, found.exchange)
    assert (verdict.code, verdict.shown) == (2, {1, 3}), verdict.lines()


def test_both_seeds_of_a_site_are_never_in_a_folder(good: Finished) -> None:
    """Each release shows one seed a site, and that of a study with a numeric boost none."""
    shown = _seeds(good.out)
    assert [len(seeds) for seeds in shown] == [4, 4, 4]
    assert len({seed for seeds in shown for seed in seeds}) == 12
    assert _seeds(finished("10000").out) == [(), (), ()]


def _seeds(out: Path) -> list[tuple[bytes, ...]]:
    from msgspec.msgpack import decode

    from consortium.secagg import messages

    found = sorted((out / "evidence").glob("*/release"))
    return [messages.decode(messages.Release, decode(f.read_bytes())[5], "").seeds for f in found]


def test_a_run_of_another_version_is_left_open(
    good: Finished, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(good.out, tmp_path / "out")  # with a study that this version can't read
    (tmp_path / "out" / "evidence" / STUDY_FOLDER / STUDY_FILE).write_text("scheme: secure-sum\n")
    for module in ("consortium.verification.agreement", "consortium.engine.run_context"):
        monkeypatch.setattr(f"{module}.__version__", "9.9.9")
    for folder in (good.out, tmp_path / "out"):
        verdict = checked(folder)
        assert verdict.code == 2
        assert "Install that one" in "\n".join(verdict.lines())


def test_what_another_build_of_a_version_makes_is_no_contradiction(
    good: Finished, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(own_platform, "_own_build", lambda: "0123456789abcdef")
    (verdict := checked(good.out)).lines()
    assert verdict.code == 2
    assert [each.where for each in verdict.findings if each.weight == "open"] == ["result"]
    copy = tmp_path / "out"
    shutil.copytree(good.out, copy)
    _map(copy)  # without the centre's key a changed file is found by any build
    assert checked(copy).code == 1


def test_a_folder_without_evidence_is_left_open(tmp_path: Path) -> None:
    verdict = checked(tmp_path)
    assert verdict.code == 2
    assert str(tmp_path) in verdict.lines()[0]


def test_other_members_of_the_consortium_are_not_named(good: Finished) -> None:
    assert not list(good.out.rglob("roster*"))


# -- tampering ------------------------------------------------------------------------------


def _bytes(name: str, change: Callable[[bytes], bytes]) -> Callable[[Path], None]:
    def act(folder: Path) -> None:
        (path,) = folder.glob(name)
        path.write_bytes(change(path.read_bytes()))

    return act


def _json(name: str, change: Callable[[dict], None]) -> Callable[[Path], None]:
    def act(folder: Path) -> None:
        (path,) = folder.glob(name)
        content = json.loads(path.read_text())
        change(content)
        path.write_text(json.dumps(content))

    return act


def _number(folder: Path) -> None:
    path = folder / f"{ROUND}.npy"
    ring = np.load(path)
    ring[0] += 1
    np.save(path, ring)


def _as_floats(folder: Path) -> None:
    path = folder / f"{ROUND}.npy"
    np.save(path, np.load(path).astype(float))


def _map(folder: Path) -> None:
    (path,) = folder.glob("tpl-*/func/*_components.nii.gz")
    image = nibabel.load(path)
    values = np.asarray(image.dataobj) * 1.01
    nibabel.save(nibabel.Nifti1Image(values, image.affine, image.header), path)


def _swap(one: str, other: str) -> Callable[[Path], None]:
    def act(folder: Path) -> None:
        first, second = folder / one, folder / other
        data = first.read_bytes()
        first.write_bytes(second.read_bytes())
        second.write_bytes(data)

    return act


def _copied(source: str, target: str) -> Callable[[Path], None]:
    return lambda folder: shutil.copyfile(folder / source, folder / target)


def _remove(name: str) -> Callable[[Path], None]:
    return lambda folder: (folder / name).unlink()


def _flip(data: bytes) -> bytes:
    middle = len(data) // 2
    return data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :]


def _last_rounds(folder: Path) -> None:
    for suffix in ("npy", "json"):
        (folder / f"transcript/round-00003.{suffix}").unlink()
    shutil.rmtree(folder / "evidence/00003")


def _repeated(folder: Path) -> None:
    for suffix in ("npy", "json"):
        _copied(f"{ROUND}.{suffix}", f"transcript/round-00004.{suffix}")(folder)
    shutil.copytree(folder / "evidence/00002", folder / "evidence/00004")
    _json("transcript/round-00004.json", lambda c: c.update(round=4))(folder)


def _epsilon(content: dict) -> None:
    content["guarantees"]["coalition"]["epsilon"] /= 2


_E = "evidence"
TAMPERING: dict[str, Callable[[Path], None]] = {
    "number-edited-in-the-transcript": _number,
    "numbers-stored-as-others": _as_floats,
    "survivor-left-out": _json(f"{ROUND}.json", lambda c: c.update(survivors=[0, 1, 2])),
    "stage-renamed": _json(f"{ROUND}.json", lambda c: c.update(stage="pca")),
    "query-digest-changed": _json(f"{ROUND}.json", lambda c: c.update(query="00" * 32)),
    "round-left-out": _remove(f"{ROUND}.json"),
    "last-rounds-cut-off": _last_rounds,
    "round-repeated": _repeated,
    "rounds-exchanged": _swap("transcript/round-00002.npy", "transcript/round-00003.npy"),
    "map-edited": _map,
    "map-removed": lambda f: next(f.glob("tpl-*/func/*_components.nii.gz")).unlink(),
    "map-emptied": _bytes("tpl-*/func/*_components.nii.gz", lambda _: b""),
    "sidecar-edited": _json("tpl-*/func/*_components.json", lambda c: c.update(Numbers={})),
    "report-with-a-smaller-epsilon": _json("privacy_report.json", _epsilon),
    "report-removed": _remove("privacy_report.json"),
    "page-edited": _bytes("report.html", lambda d: d.replace(b"</body>", b"p < 0.001</body>")),
    "file-added": lambda f: (f / "more.tsv").write_text("1\n"),
    "run-renamed": _json("run.json", lambda c: c.update(run="small-0002")),
    "study-edited": _bytes(f"{_E}/study/study.yaml", lambda d: d.replace(b"8,", b"9,")),
    "study-signature-changed": _bytes(f"{_E}/study/study.yaml.sig", _flip),
    "study-signed-by-another-key": _bytes(
        f"{_E}/study/study.yaml.sig", lambda d: d.replace(b"centre: ", b"centre: 0")
    ),
    "announcement-removed": _remove(f"{_E}/announcement"),
    "announcement-changed": _bytes(f"{_E}/announcement", _flip),
    "keys-changed": _bytes(f"{_E}/keys", _flip),
    "start-exchanged": _copied(f"{_E}/closing", f"{_E}/start"),
    "noise-smaller-than-planned": _json(
        f"{_E}/plan.json", lambda c: c["stages"][0]["local"].__setitem__(0, 1)
    ),
    "query-of-another-round": _swap(f"{_E}/00002/query", f"{_E}/00003/query"),
    "request-changed": _bytes(f"{_E}/00002/unmask", _flip),
    "request-of-another-round": _copied(f"{_E}/00001/unmask", f"{_E}/00002/unmask"),
    "release-changed": _bytes(f"{_E}/00002/release", _flip),
    "release-of-another-round": _copied(f"{_E}/00001/release", f"{_E}/00002/release"),
    "closing-changed": _bytes(f"{_E}/closing", _flip),
    "closing-removed": _remove(f"{_E}/closing"),
    "attestation-changed": _bytes(f"{_E}/attestation/north", _flip),
    "attestation-in-anothers-name": _copied(f"{_E}/attestation/north", f"{_E}/attestation/east"),
    "list-of-files-removed": _remove(f"{_E}/published"),
    "list-of-files-changed": _bytes(f"{_E}/published", _flip),
}


UNSIGNED = {"file-added", "list-of-files-removed", "list-of-files-changed"}
"""What nobody signed but the centre when it published."""


@pytest.mark.parametrize("name", TAMPERING)
def test_every_change_is_found_and_told(
    name: str, good: Finished, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also one that the centre made before it signed for its files: their list is not looked at."""
    copy = tmp_path / "out"
    shutil.copytree(good.out, copy)
    TAMPERING[name](copy)
    assert name.startswith("list") or digests_of(copy) != digests_of(good.out)
    if name not in UNSIGNED:
        monkeypatch.setattr(Checkup, "_files", lambda *_: None)
    verdict = checked(copy)
    assert verdict.code == 1, verdict.lines()
    assert "CONTRADICTION" in "\n".join(verdict.lines())


def test_who_can_have_changed_a_file_is_told(good: Finished, tmp_path: Path) -> None:
    copy = tmp_path / "out"
    shutil.copytree(good.out, copy)
    _number(copy)
    said = "\n".join(checked(copy).lines())
    assert "transcript/round-00002.npy: its numbers are not those that the centre released" in said
    assert "whoever had this copy changed it" in said


def test_there_are_thirty_kinds_of_tampering() -> None:
    assert len(TAMPERING) >= 30


# -- what the centre signed for -------------------------------------------------------------


def _words(old: bytes, new: bytes) -> Callable[[bytes], bytes]:
    def act(data: bytes) -> bytes:
        assert old in data
        return data.replace(old, new)

    return act


def _scaled(factor: float) -> Callable[[Path], None]:
    def act(folder: Path) -> None:
        (path,) = folder.glob("tpl-*/func/*_components.nii.gz")
        image = nibabel.load(path)
        values = np.asarray(image.dataobj)
        values[..., 0] *= factor
        nibabel.save(nibabel.Nifti1Image(values, image.affine, image.header), path)

    return act


def _write(name: str) -> Callable[[Path], None]:
    def act(folder: Path) -> None:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("effect\n0.8\n")

    return act


def _more_about_the_run(folder: Path) -> None:
    _json("run.json", lambda c: c.update(finding="p < 0.001"))(folder)


SIGNED: dict[str, tuple[Callable[[Path], None], str, int]] = {
    "table-invented": (_write("findings.tsv"), "findings.tsv", 2),
    "second-statement": (_write("privacy_statement.md"), "privacy_statement.md", 2),
    "map-invented": (_write("tpl-MNI/func/tpl-MNI_statmap.nii.gz"), "tpl-MNI", 2),
    "hidden-page": (_write(".more/index.html"), ".more/index.html", 2),
    "hidden-table": (_write("tables/.findings.tsv"), "tables/.findings.tsv", 2),
    "validator-silenced": (_write(".bidsignore"), ".bidsignore", 1),
    "message-invented": (_write("evidence/00001/note"), "evidence/00001/note", 2),
    "note-in-the-transcript": (_write("transcript/notes.txt"), "transcript/notes.txt", 2),
    "array-invented": (_write("evidence/public/" + 64 * "0"), "evidence/public", 2),
    "record-of-the-run": (_more_about_the_run, "run.json", 2),
    "more-about-a-round": (_json(f"{ROUND}.json", lambda c: c.update(p=0.001)), ROUND, 2),
    "page": (_bytes("report.html", _words(b"</body>", b"p < 0.001</body>")), "report.html", 1),
    "readme": (_bytes("README.md", _words(b"Privacy", b"No privacy")), "README.md", 1),
    "methods": (_bytes("methods.md", _words(b"6.73", b"3.73")), "methods.md", 1),
    "claim": (_bytes("dp_deployment.yaml", _words(b"epsilon: ", b"epsilon: 1")), "dp_dep", 1),
    "catalogue": (_bytes("ro-crate-metadata.json", _words(b'"File"', b'"Fail"')), "ro-crate", 1),
    "map-scaled": (_scaled(1.01), "_components.nii.gz", 1),
    "map-scaled-a-little": (_scaled(1 + 1e-5), "_components.nii.gz", 1),
    "map-turned": (_scaled(-1.0), "_components.nii.gz", 2),
}


@pytest.mark.parametrize("name", SIGNED)
def test_what_the_centre_changes_or_adds_is_named_though_it_signed_for_it(
    name: str, good: Finished, tmp_path: Path
) -> None:
    copy = tmp_path / "out"
    shutil.copytree(good.out, copy)
    change, where, code = SIGNED[name]
    change(copy)
    sign_files(copy, create_identity(tmp_path, entropy("centre")).key, "small-0001")
    verdict = checked(copy)
    found = [each for each in verdict.findings if where in each.where]
    assert verdict.code == code, verdict.lines()
    assert {each.weight for each in found} == {"contradiction" if code == 1 else "open"}
