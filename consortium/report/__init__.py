"""What is told of a finished study: maps, tables, privacy report, page."""
