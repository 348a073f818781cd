"""Job records and the transitions of their statuses."""
