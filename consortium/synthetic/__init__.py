"""Data made up or taken from public packages, with their truth, to try everything on."""
