"""The file format of runs: paths, records, and the names in them."""
