"""All that a guarantee rests on: bounds, noise, loss, calibration, audit."""
