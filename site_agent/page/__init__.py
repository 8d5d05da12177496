"""The site's own page: one HTML file for its people, without a server."""
