"""Custom rule: gradients of some layer near zero."""

from smdebug.rules import Rule


class VanishingGradientRule(Rule):
    """Fires where the mean of a gradient's absolute values is below `threshold`, which comes as text."""

    def __init__(self, base_trial, threshold="0.0000001"):
        super().__init__(base_trial, other_trials=None)
        self.threshold = float(threshold)

    def invoke_at_step(self, step):
        for name in self.base_trial.tensor_names(collection="gradients"):
            mean = self.base_trial.tensor(name).reduction_value(step, "mean", abs=True)
            if mean < self.threshold:
                return True
        return False
