"""Profiles of jobs: readers of system metrics and trace events.

They read from a folder or S3, even while the job is still writing.
"""
