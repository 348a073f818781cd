"""Request validation beyond the service model, one module for each kind of job."""
