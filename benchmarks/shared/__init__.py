"""Peers, environments and clients that several benchmarks use."""
