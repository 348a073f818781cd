"""The file format: where files lie, what is in a record, and the names and numbers in it."""
