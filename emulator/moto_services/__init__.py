"""moto's services, mounted in this process; no other package imports moto."""
