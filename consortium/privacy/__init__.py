"""The parts on which a guarantee depends.

Bounds and their sensitivities, clipping, the integer grid, discrete noise, exact loss, its
composition and calibration, levels of views, accountant, audit.
"""
