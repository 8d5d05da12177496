"""What a site's people have said yes to."""
