"""Networks by templates: participants' mean maps compared with public ones, and connectivity."""
