"""Profiles of jobs: readers of system metrics and trace events.

They read from a folder or S3, also while the job still writes.
"""
