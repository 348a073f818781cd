"""A profiled job read back: system metrics as samples, and trace events, from a folder or S3, while they still come."""
