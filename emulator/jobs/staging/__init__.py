"""Staging: the folders, channels and configuration a container starts with."""
