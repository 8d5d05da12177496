"""Carry the exchange of a consortium over another platform: only (name, bytes) are moved.

Each party keeps a folder of its own, which is the exchange of its agent or coordinator. A name is
written once and never changed, so merging folders is a union. The relay has no access to keys,
ledgers or scans, and does not trust the platform: dropped messages are sent again, and changed ones
raise an error.
"""

from cape_relay.folder import Folder, RelayError
from cape_relay.sync import Hub, Message, answer

__all__ = ["Folder", "Hub", "Message", "RelayError", "answer"]
