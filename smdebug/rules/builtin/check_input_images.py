"""CheckInputImages: images not normalised to a mean near 0."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from smdebug.mode_keys import ModeKeys
from smdebug.rules.built_in_rule import BuiltInRule
from smdebug.rules.parameters import integer, number, regex
from smdebug.rules.watched_quantity import Limit
from smdebug.rules.wording import count_noun
from smdebug.trials.step_tensors import WorkerTensor

_COLLECTION = "input_image"
# What a whole PyTorch model (called by its class), a Keras model or its input layer is given.
_MODEL_INPUTS = (r"^(?!\w*[Ll]oss)[A-Z]\w*_input_0$", r"^inputs(_0)?$", r"^input_\d+/outputs")


@dataclass
class ChannelSums:
    """Sums over all images seen: of each channel's values, and how many images and values a channel they are."""

    images: int
    values: int
    sums: NDArray[np.float64]

    @property
    def means(self) -> NDArray[np.float64]:
        """The mean of each channel."""
        return self.sums / self.values


def sum_channels(images: NDArray[Any], channel: int) -> ChannelSums:
    """Add up a batch of images, (images, ...) with the channels on axis `channel`.

    >>> sum_channels(np.ones((2, 3, 4, 4)), 1)
    ChannelSums(images=2, values=32, sums=array([32., 32., 32.]))
    """
    sums = images.sum(axis=tuple(axis for axis in range(images.ndim) if axis != channel), dtype=np.float64)
    return ChannelSums(len(images), images.size // images.shape[channel], sums)


class CheckInputImages(BuiltInRule):
    """Fires once threshold_samples images were seen, if a channel's mean is further than threshold_mean from 0.

    mean of a channel = sum of its values over all images seen so far / number of these values, in the unit of the
    pixels; the rule fires if |mean| > threshold_mean. Images of the same tensor and mode are counted together, over all
    workers. An image tensor has at least three axes: the first is that of the images, and axis `channel` that of the
    channels (1 for NCHW, 3 for NHWC).

    With the default regex, the rule also inspects the collection input_image, and tensors with four axes whose names
    are those of a whole model's input in PyTorch or Keras.

    Source: AWS's documentation of the rule CheckInputImages (threshold_mean 0.2, threshold_samples 500, regex
    .*hybridsequential0_input_0, channel 1).
    """

    parameters = (
        number("threshold_mean", 0.2, minimum=0.0),
        integer("threshold_samples", 500, minimum=1),
        regex("regex", ".*hybridsequential0_input_0"),
        integer("channel", 1, minimum=0),
    )
    inspects = "images (regex, or collection input_image) with three axes or more"
    needs = "its values were not saved, or have no such channel axis"
    collections: ClassVar = {_COLLECTION: {"include_regex": ".*hybridsequential0_input_0", "save_interval": "500"}}
    example: ClassVar = {"threshold_mean": "0.5", "threshold_samples": "100"}
    configure = (
        "Save the model's input into the collection input_image: in PyTorch it is `<class of the model>_input_0`, in "
        "MXNet `hybridsequential0_input_0`. For images with the channels last (Keras) set channel to 3."
    )
    advice = (
        "Subtract each channel's mean and divide by its standard deviation, with the same numbers in validation.",
        "Set channel to 3 for images with the channels last (Keras), and to 1 for images with the channels first.",
        "If pixels are from 0 to 1 on purpose, as before a BatchNorm, raise threshold_mean to 0.6.",
    )

    def _prepare(self) -> None:
        self._limit = Limit("largest mean of a channel, without its sign", self.values["threshold_mean"])
        self._sums: dict[tuple[str, ModeKeys | None], ChannelSums] = {}

    def invoke_at_step(self, step: int) -> bool:
        """Whether the images up to this global step are not normalised."""
        places = self.tensors.saved(self.tensors.choose(step, (), self.values["regex"]), step)
        if self.is_default("regex"):
            chosen = {place.name for place in places}
            more = set(self.tensors.choose(step, (_COLLECTION,), _MODEL_INPUTS)) - chosen
            in_collection = set(self.tensors.choose(step, (_COLLECTION,)))
            others = self.tensors.saved(sorted(more), step)
            places += [place for place in others if place.name in in_collection or self._has_four_axes(place)]
        return self.inspect(places, self._judge)

    def shortage(self) -> str:
        """Say that too few images were saved."""
        if self.watched_quantities:
            return ""
        most = max((sums.images for sums in self._sums.values()), default=0)
        return (
            f"it has to see {count_noun(self.values['threshold_samples'], 'image')} of a mode (threshold_samples), and "
            f"saw {most}. Save images more often, train for longer, or lower threshold_samples."
        )

    def _has_four_axes(self, place: WorkerTensor) -> bool:
        values = self.tensors.read(place)
        return values is not None and values.ndim == 4

    def _judge(self, place: WorkerTensor) -> bool | None:
        channel: int = self.values["channel"]
        images = self.tensors.read(place)
        if images is None or images.ndim < 3 or channel >= images.ndim or not images.size:
            return None
        key = place.name, self.base_trial.mode(place.step)
        seen, new = self._sums.get(key), sum_channels(images, channel)
        if seen is not None and len(seen.sums) == len(new.sums):
            new = ChannelSums(seen.images + new.images, seen.values + new.values, seen.sums + new.sums)
        self._sums[key] = new
        # A channel with NaN has no mean; the others have theirs.
        worst = int(np.nan_to_num(np.abs(new.means), nan=-1.0, posinf=np.inf).argmax())
        mean = float(new.means[worst])
        if new.images < self.values["threshold_samples"]:
            return False
        self.watch_limit(self._limit, place.step, abs(mean), place.name, place.worker)
        if not self._limit.is_passed_by(abs(mean)):
            return False
        threshold = self._limit.threshold
        text = (
            f"channel {worst} has mean {mean:.4g} over {new.images} images, further from 0 than "
            f"threshold_mean {threshold:g}"
        )
        return self.find(place.name, place.step, mean, threshold, text, place.worker)
