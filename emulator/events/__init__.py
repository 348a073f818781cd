"""From a change of a job to those that wait for it: EventBridge's deliveries to the targets of its rules."""
