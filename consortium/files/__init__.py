"""What touches the disk on behalf of everybody."""
