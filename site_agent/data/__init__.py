"""A site's data set: files, tables, cache."""
