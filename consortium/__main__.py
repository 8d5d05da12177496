"""``python -m consortium``."""

from consortium.coordinator.cli import main

main()
