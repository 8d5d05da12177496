"""Image series and volumes of a person."""
