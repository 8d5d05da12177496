"""Where a study looks: grid, atlas, images."""
