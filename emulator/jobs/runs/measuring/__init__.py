"""Resource use of a job's hosts, and system metrics files of profiled jobs."""
