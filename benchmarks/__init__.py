"""Measurements, each beside a peer in the same run. ``make bench`` prints all of them."""
