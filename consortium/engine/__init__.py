"""One study run: queries, messages, releases, transcript; the centre's half and what both share."""
