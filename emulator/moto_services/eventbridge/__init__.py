"""EventBridge: rules on buses, event patterns and schedules."""
