"""What a rule container does before and after it judges: its configuration, the rule's code, the runs, the verdict."""
