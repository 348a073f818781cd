"""Base of all hooks: step planning, step recording, and processes of one run."""
