"""What a site computes on: its own threads and processes, or its hospital's cluster."""
