"""Grid, mesh, atlas and templates of a study.

NIfTI, CIFTI and GIFTI files opened with care, images sampled at the grid's voxels, resampling,
regions of an atlas, smoothing of released maps, public templates, files of open cohorts.
"""
