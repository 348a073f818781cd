"""Stop handler: a Lambda function that stops jobs with issues, and its deployment."""
