"""FeatureImportanceOverweight: a few features that dominate all others."""

import math
from collections.abc import Iterable
from typing import ClassVar

from smdebug.config.collection import CollectionKeys
from smdebug.rules.built_in_rule import BuiltInRule
from smdebug.rules.parameters import integer, number, regex
from smdebug.rules.watched_quantity import Limit
from smdebug.rules.wording import count_noun


def compute_top_share(importances: Iterable[float], nfeatures: int) -> float:
    """Sum of the nfeatures largest importances divided by the sum of all; 0 where that is 0.

    >>> compute_top_share([6.0, 1.0, 2.0, 1.0], 2)
    0.8
    """
    ranked = sorted(importances, reverse=True)
    total = math.fsum(ranked)
    return math.fsum(ranked[:nfeatures]) / total if total else 0.0


class FeatureImportanceOverweight(BuiltInRule):
    """Fires at a step where the nfeatures most important features have more than `threshold` of the total importance.

    share = sum of the nfeatures largest importances / sum of all importances, without unit. An importance is a tensor
    whose name matches tensor_regex. XGBoost saves one per feature and type of importance: feature_importance/weight/f0
    is the number of splits by f0. It saves none for features that no tree uses. With nfeatures features or fewer, the
    share is 1.

    Source: AWS's documentation of the rule FeatureImportanceOverweight (threshold 0.8, nfeatures 3, tensor_regex
    .*feature_importance/weight).
    """

    parameters = (
        number("threshold", 0.8, minimum=0.0, maximum=1.0),
        integer("nfeatures", 3, minimum=1),
        regex("tensor_regex", ".*feature_importance/weight"),
    )
    inspects = "importances of features (tensor_regex)"
    frameworks = ("XGBoost",)
    collections: ClassVar = {CollectionKeys.FEATURE_IMPORTANCE: {"save_interval": "500"}}
    example: ClassVar = {"threshold": "0.9", "nfeatures": "2"}
    advice = (
        "Check that these features are known at prediction time: a feature that leaks the label looks the same.",
        "Limit their use with colsample_bytree, max_depth or gamma, or train without them and compare.",
        "With few features, a large share is normal: raise threshold, or lower nfeatures.",
    )

    def invoke_at_step(self, step: int) -> bool:
        """Whether a few features weigh too much at this global step."""
        names = self.tensors.choose(step, (), self.values["tensor_regex"])
        self.tensors.prefetch(self.tensors.saved(names, step))
        importances = {name: self.tensors.read_mean(name, step) for name in names}
        self.inspected += len(names)
        if not names:
            return False
        nfeatures: int = self.values["nfeatures"]
        share = compute_top_share(importances.values(), nfeatures)
        limit = Limit(f"share of the {nfeatures} most important features", self.values["threshold"])
        self.watch_limit(limit, step, share, names[0])
        if not limit.is_passed_by(share):
            return False
        top = sorted(importances, key=lambda name: -importances[name])[:nfeatures]
        listed = ", ".join(name.rpartition("/")[2] for name in top)
        text = (
            f"the {len(top)} most important of {count_noun(len(names), 'feature')} ({listed}) have a share of "
            f"{share:.4g} in the total importance, above threshold {limit.threshold:g}"
        )
        return self.find(top[0], step, share, limit.threshold, text)
