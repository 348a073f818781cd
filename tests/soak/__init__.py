"""Long runs that show what ``docs/guarantees.md`` promises: ``python -m tests.soak``, and a short one in the suite."""
