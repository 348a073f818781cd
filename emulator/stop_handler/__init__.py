"""The Lambda function that stops a training job when a rule has found an issue, and what deploys it to any endpoint."""
