"""Start-up hooks of Python and Node, and what they share with the pytest plugin."""
