"""Benchmarks of runs: their upload and reading."""
