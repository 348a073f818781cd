"""Runs containers: one small interface, one module a back end."""
