"""The process back end: each container is a local process tree under a small supervisor."""
