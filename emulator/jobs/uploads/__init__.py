"""What a container writes that goes to S3, while it runs and at its end."""
