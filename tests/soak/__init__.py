"""Soak tests of docs/guarantees.md: ``python -m tests.soak``.

The test suite includes a short run.
"""
