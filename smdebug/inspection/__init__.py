"""What a page shows of a run, as plain data: series, histograms, heat maps, values; reduced to what a screen holds."""
