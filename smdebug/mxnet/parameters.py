"""Parameters of registered blocks, and their gradients in a step."""

from collections.abc import Callable, Iterator

from mxnet import gluon, nd

from smdebug.capture.saving_plan import StepPlan
from smdebug.logger import get_logger
from smdebug.mxnet.arrays import wait_for
from smdebug.mxnet.blocks import get_block_name, list_blocks


class ParameterCapture:
    """Saves parameters by their Gluon names, each followed by its gradient if this step has computed it.

    If a parameter is on several devices, the copy on the first device is saved.
    """

    def __init__(self, save: Callable[[str, nd.NDArray], None], gradient_prefix: str) -> None:
        """Initialize with a function that saves an array by name, and the name prefix of gradients."""
        self._save = save
        self._gradient_prefix = gradient_prefix
        self._roots: list[gluon.Block] = []
        self._names: dict[int, str] = {}
        self._owners: dict[str, gluon.Parameter] = {}
        # Gluon marks a gradient as fresh after a backward pass. A trainer that uses the gradient removes the mark. This
        # set contains the parameters whose gradients a trainer has used in this step.
        self._used: set[int] = set()
        # A trainer that updates on a kvstore never removes the mark. For its parameters, the mark is removed while a
        # step is saved, so that only a backward pass of this step can set it. It is restored before a trainer reads it,
        # because the trainer would reject gradients without it.
        self._updated_by_kvstore: set[int] = set()
        self._put_aside: list[tuple[gluon.Parameter, list[nd.NDArray]]] = []
        self._stale: set[int] = set()

    def add_block(self, block: gluon.Block) -> None:
        """Add a block, whose parameters are saved from now on, including those that it gets later."""
        self._roots.append(block)

    def begin_step(self) -> None:
        """Forget which gradients earlier steps have computed and used."""
        self.return_marks()
        self._used.clear()
        self._stale.clear()
        for _, parameter in self._iterate() if self._updated_by_kvstore else ():
            if id(parameter) in self._updated_by_kvstore and _has_fresh_gradient(parameter):
                values = [value for value in _get_values(parameter) if value._fresh_grad]  # noqa: SLF001
                for value in values:
                    value._fresh_grad = False  # noqa: SLF001
                self._put_aside.append((parameter, values))

    def return_marks(self) -> None:
        """Restore the marks on gradients of earlier steps for the trainer; these gradients are not saved."""
        for parameter, values in self._put_aside:
            if not _has_fresh_gradient(parameter):
                self._stale.add(id(parameter))
            for value in values:
                value._fresh_grad = True  # noqa: SLF001
        self._put_aside.clear()

    def note_kvstore(self, parameter_ids: set[int]) -> None:
        """Remember that a kvstore updates these parameters, and leaves their gradients marked as fresh."""
        self._updated_by_kvstore |= parameter_ids

    def note_fresh_gradients(self) -> None:
        """Remember which gradients belong to this step, before a trainer uses them."""
        self._used.update(id(parameter) for _, parameter in self._iterate() if self._is_fresh(parameter))
        self.return_marks()

    def have_fresh_gradients_outside(self, parameter_ids: set[int]) -> bool:
        """Return whether any other parameter has a gradient that its trainer has not used yet."""
        return any(id(parameter) not in parameter_ids and self._is_fresh(parameter) for _, parameter in self._iterate())

    def owns_any(self, parameter_ids: set[int]) -> bool:
        """Return whether any of these parameters belongs to a registered block."""
        return any(id(parameter) in parameter_ids for _, parameter in self._iterate())

    def save(self, plan: StepPlan, *, gradients: bool) -> None:
        """Save the wanted parameters that have a value, and the wanted gradients that this step has computed."""
        wanted: list[tuple[str, nd.NDArray]] = []
        for name, parameter in self._iterate():
            values = _get_values(parameter)
            if not values:
                continue
            if plan.select(name):
                wanted.append((name, values[0]))
            is_of_step = gradients and (id(parameter) in self._used or self._is_fresh(parameter))
            if is_of_step and plan.select(f"{self._gradient_prefix}{name}"):
                wanted.append((f"{self._gradient_prefix}{name}", parameter.list_grad()[0]))
        # Trainers update parameters in this order, in the background. After the wait for the last one, all others are
        # ready.
        for _, array in reversed(wanted):
            wait_for(array)
        for name, array in wanted:
            self._save(name, array)

    def _is_fresh(self, parameter: gluon.Parameter) -> bool:
        return id(parameter) not in self._stale and _has_fresh_gradient(parameter)

    def _iterate(self) -> Iterator[tuple[str, gluon.Parameter]]:
        seen: set[int] = set()
        for root in self._roots:
            for block in list_blocks(root):
                for parameter in block.params.values():
                    if id(parameter) not in seen:
                        seen.add(id(parameter))
                        yield self._names.get(id(parameter)) or self._name(parameter, root), parameter

    def _name(self, parameter: gluon.Parameter, root: gluon.Block) -> str:
        """Return the name of a parameter, followed by a number if another parameter has the same name."""
        name, number = str(parameter.name), 0
        while name in self._owners and self._owners[name] is not parameter:
            number += 1
            name = f"{parameter.name}_{number}"
        if number:
            get_logger().warning(
                "Two parameters are called %s: that of %s is saved as %s.", parameter.name, get_block_name(root), name
            )
        self._owners[name] = parameter
        self._names[id(parameter)] = name
        return name


def _get_values(parameter: gluon.Parameter) -> list[nd.NDArray]:
    """Return the parameter's value on each device; empty before the parameter is initialised."""
    # `list_data` raises an error for parameters without a value, and for all sparse parameters.
    return parameter._data or []  # noqa: SLF001


def _has_fresh_gradient(parameter: gluon.Parameter) -> bool:
    """Return whether a backward pass has reached the parameter since a trainer last used its gradient."""
    # Gluon's trainer uses the same private mark; there is no public one.
    return parameter.grad_req != "null" and any(value._fresh_grad for value in _get_values(parameter))  # noqa: SLF001
