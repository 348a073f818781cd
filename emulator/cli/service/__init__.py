"""Commands that start, stop and reach the service."""
