"""What a rule does, beside answering, when its condition is met: stop the training, send mail or a text message."""

from smdebug.rules.action.action import Action, Actions
from smdebug.rules.action.message_action import MessageAction
from smdebug.rules.action.stop_training_action import StopTrainingAction

__all__ = ["Action", "Actions", "MessageAction", "StopTrainingAction"]
