"""Which of the product's functions each test file calls: what the table of guards is made from."""
