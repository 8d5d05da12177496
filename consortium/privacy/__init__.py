"""All that a guarantee rests on: bounds, clipping, noise, exact loss, calibration, audit."""
