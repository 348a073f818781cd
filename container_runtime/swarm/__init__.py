"""Docker Swarm back end: containers on many machines, as one-task services."""
