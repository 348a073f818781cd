"""Lambda functions: Invoke, the Runtime API, and pools of workers."""
