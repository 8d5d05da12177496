"""Carry the exchange of a consortium over another platform: only (name, bytes) are moved.

Each party keeps a folder of its own, which is what its agent or coordinator calls the exchange. A
name is written once and never changed, so putting folders together is a union. Nothing here knows
a key, a ledger or a scan, and nothing trusts the platform: what it drops is sent again, and what
it changes ends with a sentence.
"""

from cape_relay.folder import Folder, RelayError
from cape_relay.sync import Hub, Message, answer

__all__ = ["Folder", "Hub", "Message", "RelayError", "answer"]
