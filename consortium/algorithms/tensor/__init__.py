"""capeAGN: mixtures and topics from moments of order three."""
