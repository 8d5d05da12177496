"""How a site joins a consortium, and which one it trusts."""
