"""Studies that the coordinator sent and that wait for a decision of the site's staff.

The staff put the files that they receive in the folder ``studies`` of the site's folder, or in
folders of it: each study with its signature, the files that it names and ``roster.yaml``.
"""

import hashlib
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from consortium.base.regular_file import regular
from consortium.errors import ConsortiumError, DataError, StudyError
from consortium.membership.signed_study import members_digest, signature_path
from consortium.study.spec import Study
from site_agent.approval.approval import Approval, Papers, newest_approval, newest_serials
from site_agent.approval.declining import DeclinedStudy, read_declined
from site_agent.approval.folder import SiteFolder
from site_agent.layout import APPROVED, CONFIG, POLICY, STUDIES

ROSTER = "roster.yaml"
_REQUEST = ".join.yaml"
_MOST = 200  # files that are looked at


@dataclass(frozen=True)
class Offer:
    """A study file that the site's staff received."""

    path: Path
    roster: Path
    ident: str
    """Name of the file in addresses: a digest of its place in the folder."""
    papers: Papers | None
    """The study, whose signature was checked; None if it can't be used."""
    approval: Approval | None
    """The newest approval of a study of this name."""
    declined: str
    """Day on which the site's staff declined exactly this study; empty if they did not."""
    trouble: str
    """Reason why the study can't be approved as it is; empty if there is none."""

    @property
    def study(self) -> Study | None:
        """The study's request, if its files could be read."""
        return self.papers.signed.study if self.papers else None

    @property
    def is_approved(self) -> bool:
        """Whether exactly this file, with these keys, is approved."""
        if self.papers is None or self.approval is None:
            return False
        signed = self.papers.signed
        ours = (self.approval.file, self.approval.mask, self.approval.keys)
        return ours == (signed.file, signed.mask, signed.keys)

    @property
    def is_waiting(self) -> bool:
        """Whether the study can be approved, and is neither approved nor declined."""
        return not (self.trouble or self.is_approved or self.declined)

    @property
    def is_declined(self) -> bool:
        """Whether the staff declined exactly this study, and did not approve it afterwards."""
        return bool(self.declined) and not self.is_approved

    def command(self, folder: Path) -> str:
        """Return the command that approves the study, for a terminal.

        Parameters
        ----------
        folder : Path
            The site's.
        """
        words = ["site-agent", "approve", self.path, "--roster", self.roster, "-f", folder]
        return shlex.join(map(str, words))


def read_offers(site: SiteFolder) -> tuple[Offer, ...]:
    """Return the study files in the site's folder, by path. No image is opened."""
    declined = read_declined(site.path)
    return tuple(_offer(site, path, declined) for path in islice(_study_files(site.path), _MOST))


def state_digest(site: SiteFolder, papers: Papers) -> str:
    """Return a digest of all that a decision on a study depends on, except data and ledger.

    It covers the study, the files that it names, the roster, the site's settings, its left-out
    table, and the newest decision on a study of this name. So a page that carries the digest shows
    the study that is decided on.
    """
    signed = papers.signed
    name = signed.study.study
    state = [signed.file, signed.mask, members_digest(signed.keys), papers.members.digest]
    state += [str(newest_serials(site.path, site.identity).get(name, (0, False)))]
    state += [digest_or_empty(site.path / CONFIG), digest_or_empty(site.path / POLICY)]
    state += [digest_or_empty(site.config.left_out)]
    state += [str(signed.study.digest in read_declined(site.path))]
    return hashlib.sha256("|".join(state).encode()).hexdigest()


def approval_digest(folder: Path, study: str) -> str:
    """Return the digest of the record of a study's approval, for a decision to withdraw it."""
    return digest_or_empty(folder / APPROVED / f"{study}.json")


def digest_or_empty(path: Path | None) -> str:
    """Return the SHA-256 of an offered file, or nothing if none can be read."""
    if path is None:
        return ""
    try:
        return hashlib.sha256(regular(path).read_bytes()).hexdigest()
    except (OSError, DataError):
        return ""


def _study_files(folder: Path) -> Iterator[Path]:
    top = folder / STUDIES
    for path in sorted([*top.glob("*.yaml"), *top.glob("*/*.yaml")]):
        needed = (path, path.with_name(ROSTER), top / ROSTER, signature_path(path))
        if any(each.exists() and not each.is_file() for each in needed):
            continue  # a pipe would never be read
        if path.name != ROSTER and not path.name.endswith(_REQUEST):
            yield path


def _require_printable(path: Path) -> None:
    """Refuse a name that a page can't show, or that a copied command would carry to a terminal."""
    name = str(path)
    if not name.isprintable():
        raise StudyError(
            f"{name}: the name of a study's file or folder must have printable characters only, "
            "and this one has others. Rename it."
        )


def _offer(site: SiteFolder, path: Path, declined: Mapping[str, DeclinedStudy]) -> Offer:
    next_to_it = path.with_name(ROSTER)
    roster = next_to_it if next_to_it.exists() else site.path / STUDIES / ROSTER
    place = str(path.relative_to(site.path))
    ident = hashlib.sha256(place.encode("utf-8", "surrogateescape")).hexdigest()[:16]
    papers = None
    approval = None
    trouble = ""
    day = ""
    try:
        _require_printable(path)
        papers = site.papers(path, roster)
        study = papers.signed.study
        day = declined[study.digest].day if study.digest in declined else ""
        approval = newest_approval(site.path, site.identity, study.study)
        if site.config.name not in study.sites:
            raise StudyError(
                f"{path}: the study must have this site, '{site.config.name}', among its sites, "
                f"which are {', '.join(study.sites)}. Ask the coordinator to correct the study."
            )
    except ConsortiumError as error:
        trouble = str(error)
    return Offer(
        path=path,
        roster=roster,
        ident=ident,
        papers=papers,
        approval=approval,
        declined=day,
        trouble=trouble,
    )
