"""A site's data set except the contents of images and EEG.

Files in BIDS, reading and encoding of tables of participants, odd values, selection of
participants, scaling of vectors, the cache of preprocessed blocks.
"""
