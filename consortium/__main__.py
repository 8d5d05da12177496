"""``python -m consortium``."""

from consortium.cli import main

main()
