"""A hospital's side: it loads images, protects them, and answers approved studies."""
