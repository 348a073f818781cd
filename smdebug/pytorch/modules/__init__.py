"""Modules: their names, their inputs and outputs, and what torch.compile makes of them."""
