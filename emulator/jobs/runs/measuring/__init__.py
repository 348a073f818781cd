"""What a job's hosts take of their machine: read beside the container, written into AWS's files when profiled."""
