"""What a site lets any study ask."""
