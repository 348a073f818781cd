"""The Docker Swarm back end: containers on many machines, each the one task of a service."""
