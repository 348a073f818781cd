"""Tensors: their transfer from a device's memory to a step's file."""
