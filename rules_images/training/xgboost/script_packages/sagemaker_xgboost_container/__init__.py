"""What scripts import of SageMaker's XGBoost container: readers of channels and requests, checkpoints, hosts."""
