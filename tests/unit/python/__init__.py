"""The library in Python: what people import, and what it keeps."""
