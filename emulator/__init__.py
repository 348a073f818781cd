"""The SageMaker Debugger service on one machine."""
