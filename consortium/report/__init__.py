"""All output files of a finished study.

Maps as NIfTI, GIFTI and CIFTI, names and sidecars of BIDS, tables, figures, ``report.html``,
viewer, ``privacy_report.json`` and what its losses mean in sentences, credits, components made
comparable, and the comparison of two results.
"""
