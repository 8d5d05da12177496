"""A hospital's side: loads images, guards them, and answers what its people approved."""
