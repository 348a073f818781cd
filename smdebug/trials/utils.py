"""Import alias of `create_trial`."""

from smdebug.trials.create import create_trial

__all__ = ["create_trial"]
