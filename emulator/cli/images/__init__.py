"""Commands about images, their cache and the Docker engine."""
