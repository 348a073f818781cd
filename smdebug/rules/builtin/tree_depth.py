"""TreeDepth: decision trees that grew too deep."""

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from smdebug.config.collection import CollectionKeys
from smdebug.rules.built_in_rule import BuiltInRule
from smdebug.rules.parameters import number
from smdebug.rules.watched_quantity import Limit
from smdebug.rules.wording import count_noun
from smdebug.trials.step_tensors import WorkerTensor

_NODES, _TREES = "trees/Node", "trees/Tree"


def compute_depths(nodes: NDArray[Any], trees: NDArray[Any] | None = None) -> dict[int, int]:
    """Depth of each tree: floor(log2(its largest node number)), 0 for a root alone.

    Where the children of node n are 2n + 1 and 2n + 2, the largest number of depth d lies from 2^d to 2^(d+1) - 2, and
    this is the depth. XGBoost has come to number nodes without gaps: of a lopsided tree this is less than its depth.

    Args:
        nodes: numbers of the nodes.
        trees: the tree of each node; None: all are of tree 0.

    >>> compute_depths(np.arange(7)), compute_depths(np.array([0, 0, 1, 2]), np.array([0, 1, 1, 1]))
    ({0: 2}, {0: 0, 1: 1})
    """
    depths: dict[int, int] = {}
    numbers = nodes.reshape(-1).astype(np.int64)
    owners = np.zeros_like(numbers) if trees is None else trees.reshape(-1).astype(np.int64)
    for tree in np.unique(owners).tolist():
        largest = int(numbers[owners == tree].max())
        depths[tree] = max(largest.bit_length() - 1, 0)
    return depths


class TreeDepth(BuiltInRule):
    """Fires at a step where a tree is deeper than `depth`.

    depth of a tree = floor(log2(largest node number)), in levels below the root, from the tensor trees/Node (and
    trees/Tree, if a step has several trees). XGBoost saves the trees that a round added. Current versions number nodes
    without gaps, so an unbalanced tree is deeper than the formula says; the rule keeps to the documented formula.

    Source: AWS's documentation of the rule TreeDepth (depth 4).
    """

    parameters = (number("depth", 4.0, minimum=0.0),)
    inspects = "trees (collection trees)"
    frameworks = ("XGBoost",)
    collections: ClassVar = {CollectionKeys.TREES: {"save_interval": "10"}}
    example: ClassVar = {"depth": "6"}
    advice = (
        "Lower max_depth, or raise gamma and min_child_weight: deep trees memorize single samples.",
        "Compare validation loss with training loss: while both fall, the depth does no harm.",
        "Set depth to the training's max_depth; XGBoost's default is 6.",
    )

    def invoke_at_step(self, step: int) -> bool:
        """Whether a tree is too deep at this global step."""
        names = [name for name in (_NODES,) if name in self.tensors.names(step)]
        return self.inspect(self.tensors.saved(names, step), self._judge)

    def _judge(self, place: WorkerTensor) -> bool | None:
        nodes = self.tensors.read(place)
        if nodes is None or not nodes.size:
            return None
        trees = self.tensors.read_first(_TREES, place.step) if _TREES in self.tensors.names(place.step) else None
        depths = compute_depths(nodes, trees if trees is not None and trees.size == nodes.size else None)
        tree = max(depths, key=lambda each: depths[each])
        return self.weigh(
            place,
            depths[tree],
            [Limit("levels of the deepest tree", self.values["depth"])],
            lambda limit: (
                f"tree {tree} is {count_noun(depths[tree], 'level')} deep, deeper than depth {limit.threshold:g}"
            ),
        )
