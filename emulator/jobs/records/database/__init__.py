"""Where records are kept: the tables in SQLite, what is written and asked there, and what is announced after it."""
