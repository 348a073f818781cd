"""PyTorch modules: names, inputs and outputs, and torch.compile."""
