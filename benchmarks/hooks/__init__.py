"""Benchmarks of what a hook, a trace and the profiler cost a training."""
