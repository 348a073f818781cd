"""Uploads of container output to S3, during a job and at its end."""
