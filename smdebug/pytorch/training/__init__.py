"""Parameters, gradients and optimizers of a training step, and when the step is over."""
