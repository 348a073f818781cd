"""Containers of a job run: hosts, logs and metrics."""
