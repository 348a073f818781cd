"""Exceptions of smdebug.

All exceptions derive from `SMDebugError`. An exception whose name contains that of a built-in exception (value, type,
runtime, not implemented) also derives from the built-in, so that code which catches the built-in keeps working.
Messages say what is wrong, where, and what to do next.
"""

from smdebug.mode_keys import ModeKeys as modes  # noqa: N813 -- the name that users import from here


class SMDebugError(Exception):
    """Base class of all smdebug exceptions."""


class SMDebugTypeError(SMDebugError, TypeError):
    """An argument has an unsupported type."""


class SMDebugRuntimeError(SMDebugError, RuntimeError):
    """A condition other than the arguments prevents the operation."""


class SMDebugNotImplementedError(SMDebugError, NotImplementedError):
    """The operation is not implemented."""


class SMDebugValueError(SMDebugError, ValueError):
    """An argument has a supported type but an invalid value."""


class SMDebugCustomerError(SMDebugError):
    """The user's configuration or script causes the error."""


class InvalidCollectionConfiguration(SMDebugError):  # noqa: N818 -- smdebug's name
    """A collection selects nothing, because it has neither tensor names nor a regex."""

    def __init__(self, c_name: str) -> None:
        super().__init__(c_name)
        self.c_name = c_name

    def __str__(self) -> str:
        return (
            f"Collection {self.c_name} selects no tensor. Give it an include_regex or tensor names, "
            "or take it out of the collections to save."
        )


class StepNotYetAvailable(SMDebugError):  # noqa: N818 -- smdebug's name
    """The step has not been saved yet, and the training may still save it."""

    def __init__(self, step: int, mode: modes) -> None:
        super().__init__(step, mode)
        self.step = step
        self.mode = mode

    def __str__(self) -> str:
        return (
            f"Step {self.step} of mode {self.mode.name} has not been saved yet and may still come. "
            "Wait for it with trial.wait_for_steps, or ask for one of trial.steps()."
        )


class StepUnavailable(SMDebugError):  # noqa: N818 -- smdebug's name
    """The step was not saved and will not be saved any more."""

    def __init__(self, step: int, mode: modes) -> None:
        super().__init__(step, mode)
        self.step = step
        self.mode = mode

    def __str__(self) -> str:
        return (
            f"Step {self.step} of mode {self.mode.name} was not saved and will not come. "
            "trial.steps() lists the steps there are; the hook's SaveConfig decides which are saved."
        )


class TensorUnavailableForStep(SMDebugError):  # noqa: N818 -- smdebug's name
    """The tensor has no such value at this step and will not get one any more.

    Attributes:
        detail: why, if the files show another reason than that nothing was saved (a cut or corrupted event file).
    """

    def __init__(
        self,
        tname: str,
        step: int,
        mode: modes = modes.GLOBAL,
        has_reductions: bool = False,
        detail: str | None = None,
    ) -> None:
        super().__init__(tname, step, mode, has_reductions, detail)
        self.tname = tname
        self.step = step
        self.mode = mode
        self.has_reductions = has_reductions
        self.detail = detail

    def __str__(self) -> str:
        text = f"Tensor {self.tname} is not available at step {self.step} of mode {self.mode.name}"
        text += f": {self.detail}." if self.detail else ": it was not saved there."
        if self.has_reductions:
            text += " Reductions of it were saved: ask for them with reduction_value or reduction_values."
        else:
            text += " trial.tensor(name).steps() lists the steps that have it."
        return text


class ShapeUnavailableForStep(SMDebugError):  # noqa: N818 -- smdebug's name
    """Neither the tensor's shape nor its value was saved at this step."""

    def __init__(self, tname: str, step: int, mode: modes = modes.GLOBAL) -> None:
        super().__init__(tname, step, mode)
        self.tname = tname
        self.step = step
        self.mode = mode

    def __str__(self) -> str:
        return (
            f"The shape of tensor {self.tname} is not known at step {self.step} of mode {self.mode.name}: neither "
            "shape nor value was saved. Set save_shape or save_raw_tensor in the ReductionConfig to have it."
        )


class TensorUnavailable(SMDebugError):  # noqa: N818 -- smdebug's name
    """No step seen so far has this tensor."""

    def __init__(self, tname: str) -> None:
        super().__init__(tname)
        self.tname = tname

    def __str__(self) -> str:
        return (
            f"Tensor {self.tname} was not saved at any step seen so far. trial.tensor_names() lists those that were; "
            "the hook's collections decide what is saved."
        )


class InvalidWorker(SMDebugError):  # noqa: N818 -- smdebug's name
    """No worker of this name saved the tensor at this step."""

    def __init__(self, worker: str) -> None:
        super().__init__(worker)
        self.worker = worker

    def __str__(self) -> str:
        return (
            f"No value of worker {self.worker} is there. trial.tensor(name).workers(step) lists those that saved one."
        )


class NoMoreData(SMDebugError):  # noqa: N818 -- smdebug's name
    """The training has ended, and the requested step is at or after the last saved step, -1 if there is none."""

    def __init__(self, step: int, mode: modes, last_step: int) -> None:
        self.step = step
        self.mode = mode
        self.last_step = last_step
        self.msg = (
            f"The training has ended: there is no step {step} of mode {mode.name}; "
            f"the last step found was {last_step}. Nothing more will be saved."
        )
        super().__init__(step, mode, last_step)

    def __str__(self) -> str:
        return self.msg


class NoMoreProfilerData(SMDebugError):  # noqa: N818 -- smdebug's name
    """The training has ended, and there is no profiler data after this time."""

    def __init__(self, timestamp: float) -> None:
        super().__init__(timestamp)
        self.timestamp = timestamp

    def __str__(self) -> str:
        return f"The training has ended: there is no profiler data after {self.timestamp}."


class MissingCollectionFiles(SMDebugError):  # noqa: N818 -- smdebug's name
    """The training ended without writing the collections files of all its workers.

    Attributes:
        path: searched path; None if not known.
    """

    def __init__(self, path: str | None = None) -> None:
        super().__init__(path)
        self.path = path

    def __str__(self) -> str:
        where = f" under {self.path}" if self.path else ""
        return (
            f"The training job has ended and not all of its collection files are there{where}: they could not all be "
            "loaded. Check that the hook was created and registered, and that it saved at least one step."
        )


class IndexReaderException(SMDebugError):  # noqa: N818 -- smdebug's name
    """An index file or an event file does not have the expected format."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class RuleEvaluationConditionMet(SMDebugError):  # noqa: N818 -- smdebug's name
    """A rule returned True at a step: its condition is met.

    Attributes:
        end_of_rule: whether the rule has nothing more to evaluate.
    """

    def __init__(self, rule_name: str, step: int, end_of_rule: bool = False) -> None:
        super().__init__(rule_name, step, end_of_rule)
        self.rule_name = rule_name
        self.step = step
        self.end_of_rule = end_of_rule

    def __str__(self) -> str:
        return f"Evaluation of the rule {self.rule_name} at step {self.step} resulted in the condition being met"


class InsufficientInformationForRuleInvocation(SMDebugError):  # noqa: N818 -- smdebug's name
    """A rule cannot be evaluated, because it lacks required information."""

    def __init__(self, rule_name: str, message: str) -> None:
        super().__init__(rule_name, message)
        self.rule_name = rule_name
        self.message = message

    def __str__(self) -> str:
        return f"Rule {self.rule_name} cannot be evaluated: {self.message}"
