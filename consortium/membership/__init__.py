"""Members of a consortium, and the documents that they signed.

Both sides read and write them: keys, roster, requests, signed studies, signed consents.
"""
