"""CloudWatch: metrics of jobs, alarms on them, logs, and the filters that count what logs say."""
