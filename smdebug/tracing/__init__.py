"""Where the time of a training goes while its job is profiled: trace events, profiles of Python and the framework."""
