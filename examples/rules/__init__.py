"""Faulty trainings, one for each built-in rule."""
