"""EEG recordings of a person."""
