"""Rule reports: report and plot of an evaluation, and the built-in rules page."""
