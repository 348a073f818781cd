"""Rule actions: a stopped training, an email or a text message.

A rule performs them when its condition is met.
"""

from smdebug.rules.action.action import Action, Actions
from smdebug.rules.action.message_action import MessageAction
from smdebug.rules.action.stop_training_action import StopTrainingAction

__all__ = ["Action", "Actions", "MessageAction", "StopTrainingAction"]
