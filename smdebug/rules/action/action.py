"""Actions of one rule, parsed from SageMaker's JSON text."""

import json
from collections.abc import Mapping
from typing import Any

from smdebug.exceptions import SMDebugValueError
from smdebug.logger import get_logger
from smdebug.rules.action.message_action import FILTER_KEYS, MessageAction
from smdebug.rules.action.stop_training_action import StopTrainingAction

_STOP_TRAINING = "stoptraining"


def check_actions(actions_str: str) -> None:
    """Check that the text of actions can be parsed, without preparing any action.

    Raises:
        SMDebugValueError: the text is neither blank nor JSON.
    """
    if actions_str.strip():
        try:
            parse_actions(actions_str)
        except ValueError as error:
            raise SMDebugValueError(f"A rule's actions are not JSON ({error}): {actions_str}") from error


def parse_actions(actions_str: str) -> Any:
    """Parse the JSON text of actions.

    The SDK's rule_configs write a backslash before each quotation mark, as for a shell. Both forms are read.

    Raises:
        json.JSONDecodeError: the text is not JSON in either form.
    """
    try:
        return json.loads(actions_str)
    except json.JSONDecodeError:
        if '\\"' not in actions_str:
            raise
        return json.loads(actions_str.replace('\\"', '"'))


# Something to do when a rule's condition is met.
Action = MessageAction | StopTrainingAction


class Actions:
    """Performs actions. If one fails, the failure is logged, and the other actions and the rule continue.

    The text is an object or a list of objects:

        {"name": "stoptraining", "training_job_prefix": "my-job"}
        {"name": "email", "endpoint": "somebody@example.com"}
        {"name": "sms", "endpoint": "+1555..."}

    Case does not matter in the names of actions and keys, and is kept in the values. The keys beside the name may also
    be in an object "parameters".
    """

    def __init__(self, actions_str: str | None = "", rule_name: str = "") -> None:
        """Parse the actions.

        Args:
            actions_str: JSON text; blank or None for no action.
            rule_name: the rule's name, for messages.

        Raises:
            json.JSONDecodeError: the text is not JSON.
        """
        self._rule_name = rule_name
        self._actions: list[Action] = []
        if actions_str is None or not actions_str.strip():
            return
        parsed = parse_actions(actions_str)
        entries = parsed if isinstance(parsed, list) else [parsed]
        for entry in entries:
            self._add(entry)

    def _add(self, entry: Any) -> None:
        if not isinstance(entry, dict):
            get_logger().error("Rule %s: an action is a JSON object, not %r; it is left out.", self._rule_name, entry)
            return
        try:
            action = self._build({str(key).lower(): value for key, value in entry.items()})
        except Exception as error:  # noqa: BLE001 - a rule is worth more than its actions
            get_logger().error("Rule %s: action %r cannot be made ready: %s", self._rule_name, entry.get("name"), error)
            return
        if action is not None:
            self._actions.append(action)

    def _build(self, entry: Mapping[str, Any]) -> Action | None:
        if isinstance(inner := entry.get("parameters"), dict):
            entry = {**entry, **{str(key).lower(): value for key, value in inner.items()}}
        name = str(entry.get("name", "")).lower()
        key = "training_job_prefix" if name == _STOP_TRAINING else "endpoint"
        if name != _STOP_TRAINING and name not in FILTER_KEYS:
            get_logger().error(
                "Rule %s: there is no action %r; there are stoptraining, email and sms.", self._rule_name, name
            )
            return None
        given = entry.get(key)
        if not isinstance(given, str) or not given:
            get_logger().error("Rule %s: action %s needs %s; it is left out.", self._rule_name, name, key)
            return None
        if name == _STOP_TRAINING:
            return StopTrainingAction(self._rule_name, given)
        return MessageAction(self._rule_name, name, given)

    def invoke(self, message: str = "") -> None:
        """Perform all actions in order."""
        for action in self._actions:
            try:
                action.invoke(message)
            except Exception as error:  # noqa: BLE001 - as above
                get_logger().error("Rule %s: %s failed: %s", self._rule_name, type(action).__name__, error)
