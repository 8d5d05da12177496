"""Views: what is measured of a person, and how it is told."""
