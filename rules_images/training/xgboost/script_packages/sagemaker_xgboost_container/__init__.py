"""What scripts import of SageMaker's XGBoost container beside XGBoost: readers of channels, and checkpoints."""
