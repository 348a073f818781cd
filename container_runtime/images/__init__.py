"""Images for all back ends: names, definitions and pip requirements."""
