"""Brain networks found together by hospitals that do not show each other their patients."""

__version__ = "0.1.0"
