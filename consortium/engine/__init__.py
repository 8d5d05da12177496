"""One run of a study, between centre and sites.

The centre, sessions of an analysis, bytes of queries, releases and a run's last messages, names and
limits of messages, neighbours' answers, waiting, cancelling, the transcript and resuming.
"""
