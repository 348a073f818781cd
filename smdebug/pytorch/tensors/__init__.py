"""Tensors on their way from a device's memory to a step's file."""
