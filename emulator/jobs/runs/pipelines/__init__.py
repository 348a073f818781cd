"""Runs of pipelines, which are clients of the API."""
