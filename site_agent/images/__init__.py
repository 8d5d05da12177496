"""Images of a participant.

NIfTI, CIFTI, GIFTI and overlays read, confounds regressed, series preprocessed, quality, memory
needed, and one block or vector of them.
"""
