"""Benchmarks of the service: start, requests, jobs, state."""
