"""Training steps: parameters, gradients, optimizers, and a step's end."""
