"""What scripts for SageMaker's older containers import of their toolkit, whose newer name is sagemaker_training."""
