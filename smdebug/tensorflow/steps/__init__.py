"""What a step shows: of Keras' own loops, of tapes, and of graphs."""
