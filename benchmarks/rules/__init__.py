"""Benchmarks of rules and their verdicts."""
