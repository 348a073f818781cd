"""From a change of a job to what answers it: EventBridge's deliveries and the Lambda functions they call."""
