"""Tracing of profiled jobs: trace events, and Python and framework profiles."""
