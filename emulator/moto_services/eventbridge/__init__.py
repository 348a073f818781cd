"""EventBridge: rules on buses, the patterns that events match, and schedules."""
