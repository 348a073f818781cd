"""Profiler rules, which judge a job's system metrics and trace events.

`profiler_rule` is what they derive from, `builtin/` one file a rule, `evaluation` follows a job until it has ended.
"""
