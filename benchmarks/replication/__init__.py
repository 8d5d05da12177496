"""The papers' own experiments, under this project's accounting."""
