"""Who belongs to a consortium, and what its members have signed.

What both sides read and write: keys, roster, requests, signed studies, signed consents.
"""
