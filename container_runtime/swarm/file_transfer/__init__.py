"""Transfer of files to and from Swarm nodes that share no disk."""
