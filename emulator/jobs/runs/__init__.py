"""Lives of jobs, each driven top to bottom by one thread."""
