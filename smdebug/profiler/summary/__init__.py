"""Summaries of a job's profile, for its page and its report."""
