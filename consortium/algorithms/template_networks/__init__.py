"""Networks by templates: what all persons have beside public maps, and how networks go together."""
