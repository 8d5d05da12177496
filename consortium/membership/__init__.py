"""Who belongs to a consortium, and what its members have signed.

Long-term keys, roster, requests to be admitted, signed studies, consents.
"""
