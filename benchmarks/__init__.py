"""Benchmarks, each with a peer measured in the same run (``make bench``)."""
