"""Local emulator of the SageMaker Debugger service."""

VERSION = "0.1.0"
"""Version of the distribution, which takes it from here: reading installed metadata takes longer than most commands."""
