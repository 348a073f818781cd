"""Tensors of a step: from Keras' own loops, gradient tapes and graphs."""
