"""What makes unmodified boto3, AWS CLI, SageMaker SDK and notebook code talk to the emulator."""
