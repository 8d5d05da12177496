"""How a site joins a consortium, and which roster it trusts."""
