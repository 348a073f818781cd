"""EventBridge deliveries: job state changes sent to the targets of rules."""
