"""Pages about jobs of every kind, their logs, tags and exports."""
