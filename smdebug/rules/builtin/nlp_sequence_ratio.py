"""NLPSequenceRatio: sequences that consist mostly of one token, like padding."""

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from smdebug.rules.built_in_rule import BuiltInRule
from smdebug.rules.parameters import numbers, regex
from smdebug.rules.watched_quantity import Limit
from smdebug.trials.step_tensors import WorkerTensor

_COLLECTION = "input_sequence"
# PyTorch `embedding_input_0`, `encoder.word_embeddings_input_0`; Keras `embedding_1/inputs`.
_EMBEDDING_INPUTS = r"(?i)emb(?:ed)?(?:ding)?s?\d*(?:_\d+)?(?:_input_0$|/inputs)"


def compute_token_percent(tokens: NDArray[Any], token: float) -> float:
    """Percentage of a token among all tokens of an array of any shape; 0 if that is empty.

    >>> compute_token_percent(np.array([[0, 0, 7, 0]]), 0)
    75.0
    """
    return 100.0 * int(np.count_nonzero(tokens == token)) / tokens.size if tokens.size else 0.0


class NLPSequenceRatio(BuiltInRule):
    """Fires at a step where a token's share of the input sequences is above its threshold, on any worker.

    share = 100 * |{element = token}| / elements, over all sequences of the step, in percent. The first of
    token_thresholds_percent is for the first of token_values, and so on.

    With the default regex, the rule also inspects the collection input_sequence, and tensors with the names that
    PyTorch and Keras give to the input of an embedding.

    Source: AWS's documentation of the rule NLPSequenceRatio (tensor_regex .*embedding0_input_0, token_values 0,
    token_thresholds_percent 50).
    """

    parameters = (
        regex("tensor_regex", ".*embedding0_input_0"),
        numbers("token_values", [0.0]),
        numbers("token_thresholds_percent", [50.0], minimum=0.0, maximum=100.0),
    )
    inspects = "input sequences (tensor_regex, or collection input_sequence)"
    collections: ClassVar = {_COLLECTION: {"include_regex": ".*embedding0_input_0", "save_interval": "500"}}
    example: ClassVar = {"token_values": "0,1", "token_thresholds_percent": "50,50"}
    configure = (
        "Save the input of the embedding into the collection input_sequence: in PyTorch it is "
        "`<module path>_input_0` of the nn.Embedding."
    )
    advice = (
        "Sort samples by length before batching, so that sequences of a batch need little padding.",
        "Truncate sequences at a length that few exceed, and mask the padding in model and loss.",
        "For the unknown token, enlarge the vocabulary. If the token does no harm, raise token_thresholds_percent.",
    )

    def _prepare(self) -> None:
        tokens, limits = self.values["token_values"], self.values["token_thresholds_percent"]
        if len(tokens) != len(limits):
            raise self.refuse(
                f"there are {len(tokens)} token_values and {len(limits)} token_thresholds_percent: "
                "give one threshold per token."
            )
        if len(set(tokens)) < len(tokens):
            raise self.refuse("a token of token_values is there twice: give each token once.")
        self._limits = {
            token: Limit(f"tokens that are {token:g} (%)", limit) for token, limit in zip(tokens, limits, strict=True)
        }

    def invoke_at_step(self, step: int) -> bool:
        """Whether a token is too frequent at this global step."""
        names = set(self.tensors.choose(step, (), self.values["tensor_regex"]))
        if self.is_default("tensor_regex"):
            names.update(self.tensors.choose(step, (_COLLECTION,), [_EMBEDDING_INPUTS]))
        return self.inspect(self.tensors.saved(sorted(names), step), self._judge)

    def _judge(self, place: WorkerTensor) -> bool | None:
        tokens = self.tensors.read(place)
        if tokens is None:
            return None
        return any(self._weigh_token(place, tokens, token) for token in self._limits)

    def _weigh_token(self, place: WorkerTensor, tokens: NDArray[Any], token: float) -> bool:
        percent = compute_token_percent(tokens, token)
        return self.weigh(
            place,
            percent,
            [self._limits[token]],
            lambda limit: (
                f"{percent:.4g} % of its tokens are {token:g}, above token_thresholds_percent {limit.threshold:g}"
            ),
        )
