"""EEG of a participant.

Files found and read, channel and event names, epochs, and one vector of them.
"""
