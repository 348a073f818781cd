"""The SageMaker Debugger service on one machine."""

VERSION = "0.1.0"
"""Version of the distribution, as in pyproject.toml: reading installed metadata takes longer than most commands."""
