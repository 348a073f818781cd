"""Writing a run: one process's files, step by step, and what goes beside them for TensorBoard and SageMaker."""
