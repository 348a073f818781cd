"""What a container finds when it starts: its folder, its hosts, its channels, what a rule is told."""
