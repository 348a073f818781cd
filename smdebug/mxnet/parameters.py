"""Parameters of registered blocks, and their gradients in a step."""

from collections.abc import Callable, Iterator

from mxnet import gluon, nd

from smdebug.capture.saving_plan import StepPlan
from smdebug.logger import get_logger
from smdebug.mxnet.arrays import wait_for
from smdebug.mxnet.blocks import get_block_name, list_blocks


class ParameterCapture:
    """Saves parameters by their Gluon names, and behind each its gradient if it is one of this step.

    A parameter on several devices is saved from the first of them.
    """

    def __init__(self, save: Callable[[str, nd.NDArray], None], gradient_prefix: str) -> None:
        """Take what saves an array by name."""
        self._save = save
        self._gradient_prefix = gradient_prefix
        self._roots: list[gluon.Block] = []
        self._names: dict[int, str] = {}
        self._owners: dict[str, gluon.Parameter] = {}
        # Those whose gradients a trainer has used in this step: it takes the mark away that tells fresh from stale.
        self._used: set[int] = set()
        # A trainer whose kvstore updates never takes it away. Of parameters that such a trainer has, the mark is put
        # aside while a step is saved, so that only a backward pass of this step can set it; it is back before any
        # trainer looks, which would refuse gradients without it.
        self._updated_by_kvstore: set[int] = set()
        self._put_aside: list[tuple[gluon.Parameter, list[nd.NDArray]]] = []
        self._stale: set[int] = set()

    def add_block(self, block: gluon.Block) -> None:
        """Know a block's parameters, those it gets later included."""
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
        """Mark gradients of earlier steps as the trainer knows them; they do not count as this step's."""
        for parameter, values in self._put_aside:
            if not _has_fresh_gradient(parameter):
                self._stale.add(id(parameter))
            for value in values:
                value._fresh_grad = True  # noqa: SLF001
        self._put_aside.clear()

    def note_kvstore(self, parameter_ids: set[int]) -> None:
        """Remember that a kvstore updates these, and leaves their gradients marked as not used."""
        self._updated_by_kvstore |= parameter_ids

    def note_fresh_gradients(self) -> None:
        """Remember which gradients are of this step, before a trainer uses them."""
        self._used.update(id(parameter) for _, parameter in self._iterate() if self._is_fresh(parameter))
        self.return_marks()

    def have_fresh_gradients_outside(self, parameter_ids: set[int]) -> bool:
        """Return whether a parameter outside these has a gradient that waits for its trainer."""
        return any(id(parameter) not in parameter_ids and self._is_fresh(parameter) for _, parameter in self._iterate())

    def owns_any(self, parameter_ids: set[int]) -> bool:
        """Return whether one of these is a parameter of a registered block."""
        return any(id(parameter) in parameter_ids for _, parameter in self._iterate())

    def save(self, plan: StepPlan, *, gradients: bool) -> None:
        """Save the parameters that a step wants and that have a value, and the gradients that it has computed."""
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
        # Trainers update in this order and in the background: once the last is there all are, and none is waited for.
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
        """Return a parameter's own name; if another one has it, a number follows."""
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
    """Return the parameter's value on each device; none before it is initialised."""
    # `list_data` raises for parameters without a value, and for sparse ones always.
    return parameter._data or []  # noqa: SLF001


def _has_fresh_gradient(parameter: gluon.Parameter) -> bool:
    """Return whether a backward pass has reached the parameter since a trainer last used its gradient."""
    # Gluon's trainer itself goes by this mark; there is no public one.
    return parameter.grad_req != "null" and any(value._fresh_grad for value in _get_values(parameter))  # noqa: SLF001
