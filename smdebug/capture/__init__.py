"""The base of every framework's hook: what is due at a step, a step's life, and the processes that share a run."""
