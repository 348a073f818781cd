"""StalledTrainingRule: a training that no longer saves anything."""

import time
from collections.abc import Callable
from typing import Any, ClassVar

from smdebug.rules.action.stop_training_action import StopTrainingAction
from smdebug.rules.built_in_rule import ALL_FRAMEWORKS, BuiltInRule
from smdebug.rules.parameters import Parameter, boolean, number
from smdebug.rules.watched_quantity import Limit


class StalledTrainingRule(BuiltInRule):
    """Fires if no new step is saved for more than threshold seconds.

    idle = now - the time when the rule saw the last step, or began to wait, in seconds of this machine's clock. The
    rule is evaluated while it waits, and at a step that comes after such a pause. A run that has ended is not stalled,
    and steps that were saved before the rule began are read without a pause.

    With stop_training_on_fire, the rule stops the training job in progress whose name begins with
    training_job_name_prefix. If there is no such job, or more than one, it stops nothing.

    Source: AWS's documentation of the rule StalledTrainingRule (threshold 1800 s, stop_training_on_fire False,
    training_job_name_prefix None).

    Attributes:
        clock: gives seconds that only rise.
        sagemaker: boto3's SageMaker client; None: made when a job is to be stopped.
    """

    parameters = (
        number("threshold", 1800.0, minimum=0.0),
        boolean("stop_training_on_fire", default=False),
        Parameter("training_job_name_prefix", None, str, "the beginning of a training job's name"),
    )
    inspects = "steps, whatever they hold"
    frameworks = ALL_FRAMEWORKS
    collections: ClassVar = {"losses": {"save_interval": "50"}}
    example: ClassVar = {
        "threshold": "600",
        "stop_training_on_fire": "True",
        "training_job_name_prefix": "my-training-job",
    }
    configure = "Set threshold to more than the time between two saved steps."
    advice = (
        "Look at the end of the job's log for a data loader that waits, a deadlock between workers, or a full disk.",
        "If steps are saved rarely, set threshold to more than twice the time between two saved steps.",
        "To stop such a job automatically, set stop_training_on_fire and training_job_name_prefix.",
    )

    def _prepare(self) -> None:
        if self.values["stop_training_on_fire"] and not self.values["training_job_name_prefix"]:
            raise self.refuse("stop_training_on_fire needs training_job_name_prefix: it says which job to stop.")
        self._limit = Limit("seconds without a step", self.values["threshold"])
        self.sagemaker: Any = None
        self._last_step: int | None = None
        self.begin(time.monotonic)

    def begin(self, clock: Callable[[], float]) -> None:
        """Count from now, by a clock that gives seconds."""
        self.clock = clock
        self._last_seen = clock()

    def invoke_at_step(self, step: int) -> bool:
        """Whether this global step came only after a pause that was too long."""
        now = self.clock()
        idle, self._last_seen = now - self._last_seen, now
        self._last_step = step
        self.inspected += 1
        return self._judge(idle, f"step {step} came {idle:.6g} s after the previous one")

    def check_idle(self, seconds_without_new_step: float | None = None) -> bool:
        """Whether the run has stalled; to be asked while no step comes and the job has not ended.

        Args:
            seconds_without_new_step: how long no step has come; None: since the last `invoke_at_step`, or since the
                rule was made.
        """
        idle = self.clock() - self._last_seen if seconds_without_new_step is None else seconds_without_new_step
        return self._judge(idle, f"no step has come for {idle:.6g} s")

    def _judge(self, idle: float, what: str) -> bool:
        step = -1 if self._last_step is None else self._last_step
        self.watch_limit(self._limit, max(step, 0), idle, "")
        if not self._limit.is_passed_by(idle):
            return False
        threshold = self._limit.threshold
        text = f"{what}, longer than threshold {threshold:g} s"
        if self.values["stop_training_on_fire"]:
            text += f"; {self._stop_training(text)}"
        return self.find("any tensor", step, idle, threshold, text)

    def _stop_training(self, why: str) -> str:
        """Return what was done, in words; a failure is logged and keeps the rule from nothing, as with actions."""
        try:
            return StopTrainingAction(self.rule_name, self.values["training_job_name_prefix"], self.sagemaker).invoke(
                why
            )
        except Exception as error:  # noqa: BLE001 - that the training stalls is worth more
            self.logger.error("Rule %s: the training job cannot be stopped: %s", self.rule_name, error)  # noqa: TRY400
            return f"no job was stopped: {error}"
