"""A site's data set but for what is in images and EEG.

Files found in BIDS, tables of participants read, worded and encoded, odd values, who takes part,
scaling of vectors, the cache of preprocessed blocks.
"""
