"""The containers of a run: one of them, those of all hosts, what they print, and the metrics found in it."""
