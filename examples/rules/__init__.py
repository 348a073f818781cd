"""One training for each built-in rule that goes wrong in exactly the way that the rule finds."""
