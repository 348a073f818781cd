"""Trials: runs read from a folder or from S3, finished or still being written."""

from smdebug.trials.create import create_trial
from smdebug.trials.local_trial import LocalTrial
from smdebug.trials.s3_trial import S3Trial
from smdebug.trials.trial import Trial

__all__ = ["LocalTrial", "S3Trial", "Trial", "create_trial"]
