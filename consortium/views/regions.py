"""Names of FreeSurfer's regions, of which a study's columns are made: public, the same anywhere.

Source: the tables ``aparc.stats`` (Desikan et al. 2006, without the corpus callosum),
``aparc.a2009s.stats`` (Destrieux et al. 2010) and ``aseg.stats`` of FreeSurfer 5 to 8.
"""

from collections.abc import Mapping

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
