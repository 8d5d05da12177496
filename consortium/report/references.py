"""Credit: what a study's methods rest on, for its text and as BibTeX."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from consortium.report.privacy_report import PrivacyReport
from consortium.study.spec import Study


class Reference(NamedTuple):
    """A publication."""

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
    "gaussian-dp": Reference(
        "Dong, Jinshuo and Roth, Aaron and Su, Weijie J.",
        "Gaussian differential privacy",
        "Journal of the Royal Statistical Society: Series B",
        2022,
        "84(1):3–37",
        "10.1111/rssb.12454",
    ),
    "discrete-gaussian": Reference(
        "Canonne, Clément L. and Kamath, Gautam and Steinke, Thomas",
        "The discrete Gaussian for differential privacy",
        "Advances in Neural Information Processing Systems",
        2020,
        "33:15676–15688",
    ),
    "secure-aggregation": Reference(
        "Bonawitz, Keith and Ivanov, Vladimir and Kreuter, Ben and Marcedone, Antonio and "
        "McMahan, H. Brendan and Patel, Sarvar and Ramage, Daniel and Segal, Aaron and Seth, Karn",
        "Practical secure aggregation for privacy-preserving machine learning",
        "ACM Conference on Computer and Communications Security",
        2017,
        "1175–1191",
        "10.1145/3133956.3133982",
    ),
    "sparse-masks": Reference(
        "Bell, James Henry and Bonawitz, Kallista A. and Gascón, Adrià and Lepoint, Tancrède and "
        "Raykova, Mariana",
        "Secure single-server aggregation with (poly)logarithmic overhead",
        "ACM Conference on Computer and Communications Security",
        2020,
        "1253–1269",
        "10.1145/3372297.3417885",
    ),
    "cape": Reference(
        "Imtiaz, Hafiz and Mohammadi, Jafar and Silva, Rogers and Baker, Bradley and "
        "Plis, Sergey M. and Sarwate, Anand D. and Calhoun, Vince D.",
        "A correlated noise-assisted decentralized differentially private estimation protocol, "
        "and its application to fMRI source separation",
        "IEEE Transactions on Signal Processing",
        2021,
        "69:6355–6370",
    ),
    "group-ica": Reference(
        "Calhoun, Vince D. and Adali, Tülay and Pearlson, Godfrey D. and Pekar, James J.",
        "A method for making group inferences from functional MRI data using independent "
        "component analysis",
        "Human Brain Mapping",
        2001,
        "14(3):140–151",
        "10.1002/hbm.1048",
    ),
    "stable-ica": Reference(
        "Varoquaux, Gaël and Sadaghiani, Sepideh and Pinel, Philippe and Kleinschmidt, Andreas and "
        "Poline, Jean-Baptiste and Thirion, Bertrand",
        "A group model for stable multi-subject ICA on fMRI datasets",
        "NeuroImage",
        2010,
        "51(1):288–299",
        "10.1016/j.neuroimage.2010.02.010",
    ),
    "infomax": Reference(
        "Bell, Anthony J. and Sejnowski, Terrence J.",
        "An information-maximization approach to blind separation and blind deconvolution",
        "Neural Computation",
        1995,
        "7(6):1129–1159",
        "10.1162/neco.1995.7.6.1129",
    ),
    "dual-regression": Reference(
        "Beckmann, Christian F. and Mackay, Clare E. and Filippini, Nicola and Smith, Stephen M.",
        "Group comparison of resting-state FMRI data using multi-subject ICA and dual regression",
        "NeuroImage",
        2009,
        "47(Suppl. 1):S148",
        "10.1016/S1053-8119(09)71511-3",
    ),
    "cca": Reference(
        "Hotelling, Harold",
        "Relations between two sets of variates",
        "Biometrika",
        1936,
        "28(3/4):321–377",
        "10.1093/biomet/28.3-4.321",
    ),
    "linear-model": Reference(
        "Friston, Karl J. and Holmes, Andrew P. and Worsley, Keith J. and Poline, Jean-Baptiste "
        "and Frith, Christopher D. and Frackowiak, Richard S. J.",
        "Statistical parametric maps in functional imaging: a general linear approach",
        "Human Brain Mapping",
        1994,
        "2(4):189–210",
        "10.1002/hbm.460020402",
    ),
    "satterthwaite": Reference(
        "Satterthwaite, Franklin E.",
        "An approximate distribution of estimates of variance components",
        "Biometrics Bulletin",
        1946,
        "2(6):110–114",
        "10.2307/3002019",
    ),
    "false-discovery": Reference(
        "Benjamini, Yoav and Hochberg, Yosef",
        "Controlling the false discovery rate: a practical and powerful approach to multiple "
        "testing",
        "Journal of the Royal Statistical Society: Series B",
        1995,
        "57(1):289–300",
        "10.1111/j.2517-6161.1995.tb02031.x",
    ),
    "clipped-gradients": Reference(
        "Abadi, Martín and Chu, Andy and Goodfellow, Ian and McMahan, H. Brendan and "
        "Mironov, Ilya and Talwar, Kunal and Zhang, Li",
        "Deep learning with differential privacy",
        "ACM Conference on Computer and Communications Security",
        2016,
        "308–318",
        "10.1145/2976749.2978318",
    ),
    "tensor": Reference(
        "Anandkumar, Animashree and Ge, Rong and Hsu, Daniel and Kakade, Sham M. and "
        "Telgarsky, Matus",
        "Tensor decompositions for learning latent variable models",
        "Journal of Machine Learning Research",
        2014,
        "15:2773–2832",
    ),
    "bids": Reference(
        "Gorgolewski, Krzysztof J. and Auer, Tibor and Calhoun, Vince D. and others",
        "The brain imaging data structure, a format for organizing and describing outputs of "
        "neuroimaging experiments",
        "Scientific Data",
        2016,
        "3:160044",
        "10.1038/sdata.2016.44",
    ),
    "template": Reference(
        "Fonov, Vladimir and Evans, Alan C. and Botteron, Kelly and Almli, C. Robert and "
        "McKinstry, Robert C. and Collins, D. Louis",
        "Unbiased average age-appropriate atlases for pediatric studies",
        "NeuroImage",
        2011,
        "54(1):313–327",
        "10.1016/j.neuroimage.2010.07.033",
    ),
    "nilearn": Reference(
        "Abraham, Alexandre and Pedregosa, Fabian and Eickenberg, Michael and others",
        "Machine learning for neuroimaging with scikit-learn",
        "Frontiers in Neuroinformatics",
        2014,
        "8:14",
        "10.3389/fninf.2014.00014",
    ),
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
"""What an analysis rests on; one that is not named here rests on textbooks."""


def citation_keys(study: Study, report: PrivacyReport, *, images: bool) -> dict[str, Sequence[str]]:
    """Keys of what is to be cited, by what it is cited for."""
    scheme = study.privacy.scheme
    private = scheme != "none"
    summed = not all(release.each for release in report.releases)
    masks = ("secure-aggregation", *(("sparse-masks",) if report.graph else ()))
    template = () if study.data.mesh else ("template",)
    found = {
        "The analysis rests on": OF_ANALYSIS.get(study.algorithm, ()),
        "Noise is drawn from the discrete Gaussian of": ("discrete-gaussian",) if private else (),
        "Noise that cancels in the sum is due to": ("cape",) if scheme == "cape" and summed else (),
        "Secure aggregation follows": masks if scheme in ("cape", "secure-sum") and summed else (),
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
    """Write entries for a bibliography."""
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
    """Volume, number and pages of 84(1):3–37."""
    front, colon, pages = detail.rpartition(":")
    volume, _, issue = front.partition("(")
    return {
        "volume": volume if colon else "",
        "number": issue.rstrip(")"),
        "pages": pages.replace("–", "--"),
    }
