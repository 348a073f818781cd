"""Lambda functions, run: Invoke over HTTP, the workers that hold AWS's runtime client, and the API these talk to."""
