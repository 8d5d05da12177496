"""Drives one algorithm over the sites: query, messages, release, transcript."""
