"""Validation of requests that create jobs, beyond what the service model says: one module for each operation."""
