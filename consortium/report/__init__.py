"""What people get: maps as NIfTI, the privacy report, and one HTML page."""
