"""What several rules measure: losses, activations, classes, moments, and many small tensors at once."""
