"""References of a study's methods, for its text and as BibTeX."""

from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import NamedTuple

import yaml

from consortium.report.privacy_report import PrivacyReport
from consortium.study.spec import Study

_DATA = files("consortium.report") / "templates" / "references.yaml"


class Reference(NamedTuple):
    """A publication that a methods section cites."""

    authors: str
    """As BibTeX has them."""
    title: str
    where: str
    """``where`` is the journal or the proceedings."""
    year: int
    detail: str
    """Volume and pages, as in 84(1):3–37."""
    doi: str = ""
    """Empty if there is none."""

    @property
    def cited(self) -> str:
        """How a text cites it: Dong et al. 2022."""
        names = [each.split(",")[0] for each in self.authors.split(" and ")]
        if len(names) > 2:
            return f"{names[0]} et al. {self.year}"
        return f"{' and '.join(names)} {self.year}"

    @property
    def text(self) -> str:
        """Its line in a list of references."""
        authors = self.authors.replace(" and ", "; ")
        doi = f" doi:{self.doi}" if self.doi else ""
        return f"{authors} ({self.year}). {self.title}. {self.where} {self.detail}.{doi}"


REFERENCES: Mapping[str, Reference] = {
    key: Reference(**fields) for key, fields in yaml.safe_load(_DATA.read_bytes()).items()
}
OF_ANALYSIS: Mapping[str, Sequence[str]] = {
    "group_ica": ("group-ica", "stable-ica"),
    "ica": ("infomax", "dual-regression"),
    "template_networks": ("dual-regression",),
    "cca": ("cca",),
    "glm": ("linear-model", "satterthwaite", "false-discovery"),
    "network": ("clipped-gradients",),
    "tensor": ("tensor",),
}
"""References of an analysis; one that is not listed uses textbook methods."""


def citation_keys(study: Study, report: PrivacyReport, *, images: bool) -> dict[str, Sequence[str]]:
    """Return keys of references, by their subject."""
    scheme = study.privacy.scheme
    private = scheme != "none"
    summed = scheme == "cape" and not all(release.each for release in report.releases)
    masks = ("secure-aggregation", *(("sparse-masks",) if report.graph else ()))
    template = () if study.data.mesh else ("template",)
    found = {
        "The analysis is based on": OF_ANALYSIS.get(study.algorithm, ()),
        "Noise is drawn from the discrete Gaussian of": ("discrete-gaussian",) if private else (),
        "Noise that cancels in the sum is due to": ("cape",) if summed else (),
        "Secure aggregation follows": masks if summed else (),
        "Privacy losses are composed after": ("gaussian-dp",) if private else (),
        "File names, template and plots are those of": ("bids", *template, "nilearn")
        if images
        else (),
    }
    return {what: keys for what, keys in found.items() if keys}


def cite_sentences(found: Mapping[str, Sequence[str]]) -> tuple[str, list[str]]:
    """Write sentences that cite by author and year, and the lines of the list of references."""
    sentences = [
        f"{what} {'; '.join(REFERENCES[key].cited for key in keys)}."
        for what, keys in found.items()
    ]
    keys = dict.fromkeys(key for each in found.values() for key in each)
    return " ".join(sentences), [REFERENCES[key].text for key in keys]


def bibtex(keys: Sequence[str]) -> str:
    """Write a report's references as entries of BibTeX."""
    return "\n".join(_entry(key, REFERENCES[key]) for key in keys)


def _entry(key: str, reference: Reference) -> str:
    journal = "ACM Conference" not in reference.where and "Advances" not in reference.where
    fields = {
        "author": reference.authors,
        "title": f"{{{reference.title}}}",
        "journal" if journal else "booktitle": reference.where,
        "year": str(reference.year),
        **_places(reference.detail),
        "doi": reference.doi,
    }
    lines = "".join(f"  {name} = {{{value}}},\n" for name, value in fields.items() if value)
    return f"@{'article' if journal else 'inproceedings'}{{{key},\n{lines}}}\n"


def _places(detail: str) -> dict[str, str]:
    """Split 84(1):3–37 into volume, number and pages."""
    front, colon, pages = detail.rpartition(":")
    volume, _, issue = front.partition("(")
    return {
        "volume": volume if colon else "",
        "number": issue.rstrip(")"),
        "pages": pages.replace("–", "--"),
    }
