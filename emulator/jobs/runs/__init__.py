"""Job runs: one thread drives each job from start to end."""
