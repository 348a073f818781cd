"""Tables, plots and helpers for runs."""
