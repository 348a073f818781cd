"""Job store in SQLite: tables, queries, and announcements of changes."""
