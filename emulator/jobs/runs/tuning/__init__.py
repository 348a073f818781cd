"""Runs of tuning jobs, which are clients of the API."""
