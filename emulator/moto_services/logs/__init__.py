"""CloudWatch Logs: events on disk, and the selection of streams."""
