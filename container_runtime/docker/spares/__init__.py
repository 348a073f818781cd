"""Spare containers of the Docker back end."""
