"""Prefect: order, progress and artifacts; nothing here computes."""
