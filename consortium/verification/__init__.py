"""The checks behind ``verify``, without files.

Agreement, sums, signatures, attestations, equivocation, replay, rounding, and the verdict.
"""
