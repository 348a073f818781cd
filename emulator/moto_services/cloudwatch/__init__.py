"""CloudWatch: metrics of jobs, alarms, logs and metric filters."""
