"""A consortium's papers without any scans: keys, rosters, signed studies, sites' folders."""

from datetime import date
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from consortium.coordinator.demo.prepare import EXCHANGE, DemoFolders
from consortium.membership.consent import Consent, post_consent
from consortium.membership.keys import create_identity, load_identity
from consortium.membership.roster import Roster, found_roster, read_roster, save_roster
from consortium.membership.signed_study import read_signed, sign_study
from consortium.simulation.bids import Recipe, make_consortium
from consortium.simulation.signals import SignalLevels
from site_agent.config import SiteConfig
from tests.support.local_consortium import SITES, STUDY

PLAIN = STUDY.replace("BOOST", "exact").replace("DROPOUTS", "0")


def private(number: int) -> Ed25519PrivateKey:
    """Return a key by number."""
    return Ed25519PrivateKey.from_private_bytes(bytes([number] * 32))


def public(number: int) -> bytes:
    """Return the public half of a key by number."""
    return private(number).public_key().public_bytes_raw()


def members(handovers: int = 0) -> Roster:
    """Return three sites; the consortium's key is 1, or was handed over from 1 step by step."""
    found = found_roster(public(1))
    for name, number in (("north", 101), ("east", 102), ("south", 103)):
        found = found.with_site(name, public(number))
    for number in range(1, handovers + 1):
        found = found.handed_over(private(number), public(number + 1))
    return found


def papers(root: Path, text: str = PLAIN) -> tuple[DemoFolders, Roster]:
    """Write every party's folder and keys, a roster and a signed study that is not approved."""
    place = DemoFolders(root)
    files = place.files
    (root / EXCHANGE).mkdir(parents=True)
    files.keys.mkdir()
    found = found_roster(create_identity(files.keys, b"c" * 64).public)
    for number, name in enumerate(SITES):
        folder = place.site(name)
        folder.mkdir(parents=True)
        place.dataset(name).mkdir()
        SiteConfig.create(name, place.dataset(name), str(root / EXCHANGE)).save(folder)
        found = found.with_site(name, create_identity(folder, bytes([number] * 64)).public)
    files.study.write_text(text)
    publish(place, found)
    return place, found


def give_scans(place: DemoFolders) -> None:
    """Give every site the scans that the study asks for."""
    recipe = Recipe(SITES, 6, 5, volumes=24, networks=2, resolution=30.0, levels=SignalLevels())
    make_consortium(place.root / "hospitals", recipe, workers=1)


def publish(place: DemoFolders, found: Roster) -> None:
    """Sign the roster, and the study as it is now."""
    files, key = place.files, load_identity(place.files.keys).key
    save_roster(files.roster, found, key)
    sign_study(files.study, found, key)


def consent(place: DemoFolders, *names: str, until: date | None = None) -> None:
    """Have sites approve one run of the study that is on the exchange, up to a day."""
    study = read_signed(place.files.study, read_roster(place.files.roster)).study
    for name in names:
        key = load_identity(place.site(name)).key
        allowed = Consent(name, study.digest, 1, until=until)
        post_consent(place.files.open_exchange(), key, study.study, allowed)
