"""A result that is not the sum of what sites signed: by the centre, and by who has its disk."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from consortium.base.atomic import write_text
from consortium.coordinator.evidence import sign_files
from consortium.coordinator.late_evidence import fetch_late
from consortium.coordinator.verify import Checkup
from consortium.engine.centre import Centre
from consortium.errors import ConsortiumError
from consortium.exchange import DirectoryExchange
from consortium.membership.keys import load_identity
from consortium.privacy.mechanism import Mechanism
from consortium.secagg import messages
from consortium.secagg.release import release_message
from tests.attacks.attack_kinds import Stage, always, attack, nothing
from tests.support.finished_run import OPEN, STUDY, play, publish
from tests.support.local_consortium import LocalConsortium, build, conduct


def _shown(stage: Stage, folder: Path) -> bool:
    """Whether a reader is told that every round is what sites signed."""
    verdict = Checkup(folder).run()
    stage.said += verdict.lines()
    return verdict.code == 0


def _played(
    stage: Stage,
    change: Callable[[pytest.MonkeyPatch], None],
    boost: str = "exact",
    text: str = STUDY,
) -> bool:
    """Carry a run out by a centre that was changed, up to the reader's verdict."""
    place = build(stage.root, boost=boost, text=text)
    with pytest.MonkeyPatch.context() as patch:
        change(patch)
        local = LocalConsortium(place)
        try:
            centre = local.centre()
            conduct(centre)
            publish(local, centre)
        except ConsortiumError as error:
            stage.said.append(str(error))
            return False
        finally:
            stage.said += [line for _, line in local.log]
    return _shown(stage, place.files.out)


@attack(
    "hub",
    guard="site_agent.run.checks:agrees",
    without="invented numbers of the centre are shown as the sums of sites",
    stops="its numbers are not the sum of the sites' messages",
    instead=always(True),
)
def invented_result(stage: Stage) -> bool:
    """Publishes maps and a transcript that are not the sum which it opened."""

    def change(patch: pytest.MonkeyPatch) -> None:
        true = Mechanism.combine
        patch.setattr(Mechanism, "combine", lambda *given: true(*given) + np.uint8(1))

    return _played(stage, change)


@attack(
    "hub",
    guard="site_agent.run.checks:agrees",
    without="a cape study with open vectors still requires trust in the centre",
    stops="its numbers are not the sum of the sites' messages",
    instead=always(True),
)
def invented_result_of_open_vectors(stage: Stage) -> bool:
    """Publishes, in a cape study with open vectors, other numbers than their sum."""

    def change(patch: pytest.MonkeyPatch) -> None:
        true = Mechanism.combine
        patch.setattr(Mechanism, "combine", lambda *given: true(*given) + np.uint8(1))

    return _played(stage, change, "10000", OPEN)


def _false_seed(*given: Any, **more: Any) -> messages.Release:
    body = release_message(*given, **more)
    return msgspec.structs.replace(body, seeds=(bytes(31), *body.seeds[1:]))


@attack(
    "hub",
    guard="consortium.secagg.release:is_self_seed",
    without="the centre removes a mask that no site added, and chooses the result",
    stops="shows a seed of north that is not the one which the site committed to",
    instead=always(True),
)
def seed_of_its_own_making(stage: Stage) -> bool:
    """Publishes another seed, and the false sum that follows from it."""

    def change(patch: pytest.MonkeyPatch) -> None:
        patch.setattr("consortium.engine.releases.release_message", _false_seed)
        patch.setattr("site_agent.run.checks.agrees", lambda *_: True)  # it fits the false seed

    return _played(stage, change)


@attack(
    "disk intruder",
    guard="consortium.engine.releases:_same",
    without="the centre continues with numbers that were not released, and publishes the result",
    stops="differs from the release: it was changed",
    instead=always(True),
)
def transcript_edited_before_a_restart(stage: Stage) -> bool:
    """Changes numbers in the centre's transcript while the centre is down."""
    place = build(stage.root, text=STUDY)
    local = LocalConsortium(place)
    centre = local.centre()
    centre.open()
    centre.step()
    path = place.files.out / "transcript" / "round-00001.npy"
    ring = np.load(path)
    np.save(path, ring + ring.dtype.type(1))
    again: Centre = local.centre()
    again.open()
    assert again.session is not None
    kept = again.session.rounds[0].values
    assert centre.session is not None
    return not np.array_equal(kept, centre.session.rounds[0].values)


def _edited(stage: Stage, change: Callable[[Path], None]) -> bool:
    found = play(build(stage.root, text=STUDY))
    change(found.out)
    return _shown(stage, found.out)


@attack(
    "exchange",
    guard="consortium.coordinator.late_evidence:check_attestation",
    without="a correct result appears false, because an added attestation is forged",
    stops="small-0001/attestation/east is left out: .* isn't signed with its key",
    instead=nothing,
)
def attestation_forged_after_the_end(stage: Stage) -> bool:
    """Posts a forgery under the name of a site's late attestation."""
    found = play(build(stage.root, text=STUDY, dropouts=1), "east")
    there = (found.out / "evidence" / "attestation" / "north").read_bytes()
    forged = there.replace(b"north", b"east", 1).replace(b"\xa5east", b"\xa4east", 1)
    place = found.exchange / "runs" / "small-0001" / "attestation" / "east"
    place.write_bytes(forged)
    stage.said += fetch_late(found.out, DirectoryExchange(found.exchange)).lines()
    return Checkup(found.out).run().contradicted


@attack(
    "file giver",
    guard="consortium.coordinator.verify:Checkup._files",
    without="a reader trusts statements that the centre never made, such as the duration",
    stops="report.html: is not the file that the centre published",
    instead=nothing,
)
def file_exchanged(stage: Stage) -> bool:
    """Distributes a copy of the result with another duration of the run."""

    def change(folder: Path) -> None:
        page = folder / "report.html"
        lasted = re.compile(r"(?<=</td><td>)[^<]*(?=</td></tr>\s*</tbody>)")
        other = str.maketrans("0123456789", "1234567890")  # as long, as the catalogue has sizes
        text = page.read_text(encoding="utf-8")
        page.write_text(lasted.sub(lambda found: found[0].translate(other), text))

    return _edited(stage, change)


def _signed(stage: Stage, change: Callable[[Path], None]) -> bool:
    """Let the centre change its folder, and sign for the files as they are then."""
    place = build(stage.root, text=STUDY)
    found = play(place)
    change(found.out)
    sign_files(found.out, load_identity(place.files.keys).key, "small-0001")
    return _shown(stage, found.out)


@attack(
    "hub",
    guard="consortium.coordinator.remake:Remake._told",
    without="a reader trusts a page with an invented finding",
    stops="report.html: has other contents than those that follow from the releases",
    instead=lambda _: lambda *_: (),
)
def page_that_says_more(stage: Stage) -> bool:
    """Writes a finding of its own into the page before it signs for it."""

    def change(folder: Path) -> None:
        page = folder / "report.html"
        page.write_bytes(page.read_bytes().replace(b"</body>", b"p < 0.001</body>"))

    return _signed(stage, change)


@attack(
    "hub",
    guard="consortium.coordinator.verify:Checkup._unmade",
    without="a reader takes an invented table for a part of the result",
    stops="findings.tsv: does not follow from the study and the releases",
    instead=nothing,
)
def table_of_its_own(stage: Stage) -> bool:
    """Publishes an invented table with the result, and signs for it."""
    return _signed(stage, lambda folder: write_text(folder / "findings.tsv", "p\n0.001\n"))
