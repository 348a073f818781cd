"""Hook configuration: collections, save and reduction configs, and their JSON."""
