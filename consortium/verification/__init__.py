"""Whether a published result is the sum of what sites signed; nothing here touches a disk."""
