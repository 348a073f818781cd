"""Reading a run: its files, indexes and records, and one tensor of it."""
