"""Unmodified boto3, AWS CLI, SageMaker SDK and notebook code on the emulator."""
