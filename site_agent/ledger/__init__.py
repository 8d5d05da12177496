"""What a site's data have cost, across all studies."""
