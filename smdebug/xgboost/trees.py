"""Trees added by a boosting round, as columns."""

import json
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import xgboost

from smdebug.exceptions import SMDebugValueError

COLUMNS = ("Tree", "Node", "ID", "Feature", "Split", "Yes", "No", "Missing", "Gain", "Cover", "Category")
_ABSENT = "nan"


def get_newest_trees(booster: xgboost.Booster, feature_names: list[str]) -> dict[str, Any]:
    """Return the columns of `Booster.trees_to_dataframe` for the trees of the newest round, without pandas.

    Gain, Cover and Split are the model's float32 numbers as float64. Rows are sorted by tree and node. Absent text
    values are `nan`.

    Raises:
        xgboost.core.XGBoostError, ValueError: the booster has no trees.
        SMDebugValueError: the leaves contain more than one number, which a column cannot represent.
    """
    rounds = booster.num_boosted_rounds()
    if _talks_when_cut():
        # Each round adds equally many trees.
        trees = _read_trees(booster)
        trees = trees[-(len(trees) // rounds) :]
    else:
        trees = _read_trees(booster[rounds - 1 : rounds])
    types = booster.feature_types or []
    first = (rounds - 1) * len(trees)
    rows = [row for number, tree in enumerate(trees, first) for row in _get_rows(tree, number, feature_names, types)]
    columns = dict(zip(COLUMNS, zip(*rows, strict=True), strict=True))
    return {
        name: np.array(values, np.int64 if name in ("Tree", "Node") else np.float64)
        if name in ("Tree", "Node", "Split", "Gain", "Cover")
        else list(values)
        for name, values in columns.items()
    }


def _talks_when_cut() -> bool:
    """Return whether a booster of a single round would ask other hosts for the number of features.

    Before XGBoost 2.1 it does, and they do not answer: only the first of them saves trees.
    """
    version = tuple(int(part) for part in xgboost.__version__.split(".")[:2])
    if version >= (2, 1):
        return False
    collective: Any = getattr(xgboost, "collective", None)
    return collective is not None and collective.get_world_size() > 1


def _read_trees(booster: xgboost.Booster) -> list[dict[str, Any]]:
    gradient_booster = json.loads(bytes(booster.save_raw("json")))["learner"]["gradient_booster"]
    # A dart model wraps a model of trees.
    trees: list[dict[str, Any]] = gradient_booster.get("gbtree", gradient_booster)["model"]["trees"]
    return trees


def _get_rows(
    tree: dict[str, Any], number: int, feature_names: list[str], types: Sequence[str]
) -> list[tuple[Any, ...]]:
    if int(tree["tree_param"]["size_leaf_vector"]) > 1:
        raise SMDebugValueError("each leaf of this model holds a vector, and a column has room for one number")
    left, right = tree["left_children"], tree["right_children"]
    categories = _get_categories(tree)
    rows = []
    # Pruned nodes are still in the arrays, but are not reachable.
    for node in sorted(_find_reachable(left, right)):
        own = f"{number}-{node}"
        cover = tree["sum_hessian"][node]
        if left[node] < 0:
            value = tree["split_conditions"][node]
            rows.append((number, node, own, "Leaf", math.nan, _ABSENT, _ABSENT, _ABSENT, value, cover, _ABSENT))
            continue
        feature = tree["split_indices"][node]
        missing = left[node] if tree["default_left"][node] else right[node]
        # XGBoost's `yes` branch is that of the listed categories, which is the right child.
        yes, no = (right[node], left[node]) if node in categories else (left[node], right[node])
        split = math.nan
        if node not in categories and (not types or types[feature] != "i"):
            split = tree["split_conditions"][node]
            # Integers are compared with the next integer, as in XGBoost's dumps.
            split = math.ceil(split) if types and types[feature] == "int" else split
        children = (f"{number}-{child}" for child in (yes, no, missing))
        category = str(categories.get(node, _ABSENT))
        rows.append(
            (number, node, own, feature_names[feature], split, *children, tree["loss_changes"][node], cover, category)
        )
    return rows


def _find_reachable(left: list[int], right: list[int]) -> list[int]:
    reached = [0]
    # It grows while it is walked.
    for node in reached:
        if left[node] >= 0:
            reached += [left[node], right[node]]
    return reached


def _get_categories(tree: dict[str, Any]) -> dict[int, list[int]]:
    return {
        node: tree["categories"][start : start + size]
        for node, start, size in zip(
            tree["categories_nodes"], tree["categories_segments"], tree["categories_sizes"], strict=True
        )
    }
