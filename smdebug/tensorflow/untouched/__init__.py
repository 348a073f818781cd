"""Capture of unmodified scripts with Keras loops, tapes or sessions."""
