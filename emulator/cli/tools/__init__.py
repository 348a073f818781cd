"""Commands about this machine, the shell and the stop handler."""
