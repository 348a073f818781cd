"""Files of a release."""
