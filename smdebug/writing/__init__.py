"""Writing of a run: one process's files, TensorBoard files and metrics."""
