"""The site's own page: one file for a data manager and an ethics board, without a server."""
