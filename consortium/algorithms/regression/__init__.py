"""capeFM: regression from one noisy moment."""
