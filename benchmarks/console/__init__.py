"""Benchmarks of the console."""
