"""Rules of the profiler: what judges a job's system metrics and trace events, piece by piece of its time.

`profiler_rule` is what they derive from, `builtin/` one file a rule, `evaluation` follows a job until it has ended.
"""
