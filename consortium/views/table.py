"""Views made of a table's columns.

Names of FreeSurfer's regions, from which a study's columns are made. They are public.

Source: the tables ``aparc.stats`` (Desikan et al. 2006, without the corpus callosum),
``aparc.a2009s.stats`` (Destrieux et al. 2010) and ``aseg.stats`` of FreeSurfer 5 to 8.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import combinations
from typing import Annotated, Literal

from pydantic import Field, StringConstraints, field_validator, model_validator

from consortium.base.formatting import count
from consortium.base.frozen_model import FieldError
from consortium.views.base import BaseView, BesideName
from consortium.views.column import Column

_RANGE = re.compile(r"^(?P<stem>[A-Za-z0-9_.&-]*)\[(?P<first>\d{1,5})-(?P<last>\d{1,5})\]$")
_NAME = re.compile(r"[A-Za-z0-9_.&-]{1,64}")
_REGION = "*"
"""Placeholder of a region in a column's name; two of them denote every pair of regions."""
Region = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_.&-]{0,64}(\[\d{1,5}-\d{1,5}\])?$")]
MOST_COLUMNS = 20_000
ANYONE = "sub-*"
"""Placeholder of a participant's folder in the path of files of one participant each."""


class TableView(BaseView):
    """Columns of a table with one row per participant."""

    source: Literal["table"]
    """A table of the data set."""
    file: BesideName = "participants.tsv"
    """Table in the data set's folder, or a file of each participant with 'sub-*' for the folder.

    A table is separated by tabs or commas. It has a column participant_id, or a first column as in
    the tables of aparcstats2table, asegstats2table and ENIGMA. A participant's file is of one of
    four kinds. FreeSurfer's stats files, as freesurfer/sub-*/stats/lh.aparc.stats, have regions
    with measures as columns, as insula_ThickAvg. A matrix between regions, as
    xcp_d/sub-*/func/sub-*_task-rest_space-MNI152NLin2009cAsym_atlas-Gordon_stat-pearsoncorrelation_relmat.tsv,
    has pairs as columns: a-b for a's line and b's column, or 1-2 in a file without names, as
    HALFpipe's. Time series (a name that ends in _timeseries.tsv, or in .ptseries.nii, CIFTI's of
    parcels) have the same columns, and their correlations are computed. CIFTI files of one number
    per parcel, as xcp_d/sub-*/anat/sub-*_thickness.pscalar.nii, have parcels as columns."""
    columns: dict[str, Column] = Field(min_length=1)
    """Columns in their order, each with its public limits. 'x[0-63]' means x0 to x63, '*' each of
    the 'regions', as in 'lh_*_thickness', and '*-*' every two of them, the earlier first."""
    regions: Literal["desikan", "destrieux", "aseg"] | tuple[Region, ...] = ()
    """Meaning of '*' in a column's name: FreeSurfer's regions of an atlas ('desikan', 34 a
    hemisphere; 'destrieux', 74; 'aseg', 14 nuclei), or a list of names, in which 'network[1-10]'
    means ten."""
    gaps: float = Field(default=0.0, ge=0, le=0.5)
    """Fraction of the columns in which a participant may have no value. Views of `average` and
    outcomes of `glm` may have gaps. The share of participants who have each column is then released
    with the rest, and results are computed from those participants. A participant who lacks more is
    left out. With 0, a participant who lacks any is left out."""

    @field_validator("columns")
    @classmethod
    def _not_too_many(cls, columns: dict[str, Column]) -> dict[str, Column]:
        many = 0
        for name, column in columns.items():
            found = _RANGE.match(name)
            if found and int(found["first"]) > int(found["last"]):
                raise ValueError(f"{name}: the range runs backwards. Swap its ends")
            span = int(found["last"]) - int(found["first"]) + 1 if found else 1
            many += span * len(column.labels(name))
            if not found and not _NAME.fullmatch(name.replace(_REGION, "x", 2)):
                raise ValueError(
                    f"{name[:40]!r} is not a name of a column. Use letters, digits, _ . & -"
                )
        _check_number(many)
        return columns

    @field_validator("regions")
    @classmethod
    def _not_too_many_regions(cls, regions: str | tuple[str, ...]) -> str | tuple[str, ...]:
        if not isinstance(regions, str):
            spans = [_RANGE.match(name) for name in regions]
            sizes = (int(s["last"]) - int(s["first"]) + 1 if s else 1 for s in spans)
            _check_number(sum(sizes))
        return regions

    @model_validator(mode="after")
    def _regions_are_meant(self) -> TableView:
        if any(_REGION in name for name in self.columns) != bool(self.regions):
            raise FieldError(
                "columns",
                "a name with '*' and 'regions' belong together, as 'lh_*_thickness' with "
                "regions: desikan. Give both, or neither",
            )
        many = 0
        nodes = len(self._regions)
        for name, column in self.columns.items():
            each = (1, nodes, nodes * (nodes - 1) // 2)[name.count(_REGION)]
            many += each * len(column.labels(name))
        _check_number(many)
        named = [name for name, _ in self.single_columns] if self.regions else []
        twice = [x for all_ in (self._regions, named) for x, n in Counter(all_).items() if n > 1]
        if twice:
            raise FieldError("columns", f"{twice[0]} appears twice. Name each column once")
        return self

    @property
    def columns_read(self) -> tuple[tuple[str, str], ...]:
        """Its file with each of its columns."""
        return tuple((self.file, name) for name, _ in self.single_columns)

    @property
    def is_by_person(self) -> bool:
        """Whether it is read from a file of each participant."""
        return ANYONE in self.file.split("/")

    @property
    def single_columns(self) -> tuple[tuple[str, Column], ...]:
        """Every column by its own name."""
        found: list[tuple[str, Column]] = []
        for name, column in self.columns.items():
            names = _ranged(name) if _RANGE.match(name) else self._of_regions(name)
            found += [(each, column) for each in names]
        return tuple(found)

    def _of_regions(self, name: str) -> tuple[str, ...]:
        if _REGION not in name:
            return (name,)
        if name.count(_REGION) == 1:
            return tuple(name.replace(_REGION, region) for region in self._regions)
        front, between, back = name.split(_REGION)
        return tuple(f"{front}{a}{between}{b}{back}" for a, b in combinations(self._regions, 2))

    @property
    def _regions(self) -> tuple[str, ...]:
        """Names for which a star is a placeholder."""
        if isinstance(self.regions, str):
            return REGIONS[self.regions]
        return tuple(each for name in self.regions for each in _ranged(name))

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of the view's entries."""
        return tuple(x for name, column in self.single_columns for x in column.labels(name))

    def known_sums(self, size: int) -> Iterator[tuple[range, float]]:
        """Yield the levels of a column with an entry for each: every participant has one."""
        del size
        start = 0
        for name, column in self.single_columns:
            many = len(column.labels(name))
            if many > 1:
                yield range(start, start + many), 1.0
            start += many

    def size(self, image_features: int, maps: int) -> int:
        """Return the number of entries of all columns."""
        del image_features, maps
        return len(self.labels)

    @property
    def stated_gaps(self) -> float:
        """Fraction of the columns that a participant may lack."""
        return self.gaps

    @property
    def heading(self) -> str:
        """Name, and the table's file."""
        return f"{self.name} (columns of {self.file})"

    def methods_sentence(self, size: int) -> str:
        """State the table of its numbers."""
        return f"{self.name} ({count(size, 'number')}) from the columns of {self.file}"


def _ranged(name: str) -> tuple[str, ...]:
    """Yield every name that ``x[0-63]`` means; a name without a range is itself."""
    span = _RANGE.match(name)
    if span is None:
        return (name,)
    numbers = range(int(span["first"]), int(span["last"]) + 1)
    return tuple(f"{span['stem']}{number}" for number in numbers)


def _check_number(many: int) -> None:
    if many > MOST_COLUMNS:
        raise ValueError(f"{many} entries are more than {MOST_COLUMNS}. Name fewer columns")


_DESIKAN = """
bankssts caudalanteriorcingulate caudalmiddlefrontal cuneus entorhinal fusiform inferiorparietal
inferiortemporal isthmuscingulate lateraloccipital lateralorbitofrontal lingual
medialorbitofrontal middletemporal parahippocampal paracentral parsopercularis parsorbitalis
parstriangularis pericalcarine postcentral posteriorcingulate precentral precuneus
rostralanteriorcingulate rostralmiddlefrontal superiorfrontal superiorparietal superiortemporal
supramarginal frontalpole temporalpole transversetemporal insula
"""
_DESTRIEUX = """
G&S_frontomargin G&S_occipital_inf G&S_paracentral G&S_subcentral G&S_transv_frontopol
G&S_cingul-Ant G&S_cingul-Mid-Ant G&S_cingul-Mid-Post G_cingul-Post-dorsal G_cingul-Post-ventral
G_cuneus G_front_inf-Opercular G_front_inf-Orbital G_front_inf-Triangul G_front_middle G_front_sup
G_Ins_lg&S_cent_ins G_insular_short G_occipital_middle G_occipital_sup G_oc-temp_lat-fusifor
G_oc-temp_med-Lingual G_oc-temp_med-Parahip G_orbital G_pariet_inf-Angular G_pariet_inf-Supramar
G_parietal_sup G_postcentral G_precentral G_precuneus G_rectus G_subcallosal G_temp_sup-G_T_transv
G_temp_sup-Lateral G_temp_sup-Plan_polar G_temp_sup-Plan_tempo G_temporal_inf G_temporal_middle
Lat_Fis-ant-Horizont Lat_Fis-ant-Vertical Lat_Fis-post Pole_occipital Pole_temporal S_calcarine
S_central S_cingul-Marginalis S_circular_insula_ant S_circular_insula_inf S_circular_insula_sup
S_collat_transv_ant S_collat_transv_post S_front_inf S_front_middle S_front_sup S_interm_prim-Jensen
S_intrapariet&P_trans S_oc_middle&Lunatus S_oc_sup&transversal S_occipital_ant S_oc-temp_lat
S_oc-temp_med&Lingual S_orbital_lateral S_orbital_med-olfact S_orbital-H_Shaped S_parieto_occipital
S_pericallosal S_postcentral S_precentral-inf-part S_precentral-sup-part S_suborbital S_subparietal
S_temporal_inf S_temporal_sup S_temporal_transverse
"""
_ASEG = """
Left-Thalamus Left-Caudate Left-Putamen Left-Pallidum Left-Hippocampus Left-Amygdala
Left-Accumbens-area Right-Thalamus Right-Caudate Right-Putamen Right-Pallidum Right-Hippocampus
Right-Amygdala Right-Accumbens-area
"""

REGIONS: Mapping[str, tuple[str, ...]] = {
    "desikan": tuple(_DESIKAN.split()),
    "destrieux": tuple(_DESTRIEUX.split()),
    "aseg": tuple(_ASEG.split()),
}
"""By atlas, in the order of FreeSurfer's own tables; of ``aseg`` the nuclei of both sides."""
