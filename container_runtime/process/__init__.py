"""Process back end: containers as local process trees under a supervisor."""
