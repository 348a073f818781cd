"""What notebooks ask a job's profile, by names of the original: frames, statistics, charts, Python profiles."""
