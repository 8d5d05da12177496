"""What every room stands on: files, numbers in words, and what both programs share."""
