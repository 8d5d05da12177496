"""Made-up scans for the demo and the tests."""
