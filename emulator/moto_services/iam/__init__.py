"""Additions and corrections to moto's IAM."""
