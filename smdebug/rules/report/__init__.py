"""What is told of rules: the report and picture of an evaluation, and the page of all built-in rules."""
