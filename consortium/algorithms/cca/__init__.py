"""capeCCA: linked directions of two or more views of the same participants."""
