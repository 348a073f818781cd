"""The framework-free half of smdebug: file format, configuration and the base of every hook."""
