"""Measurements shared by rules: losses, activations, classes and moments."""
