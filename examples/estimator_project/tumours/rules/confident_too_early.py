"""Custom rule: large scores in the first steps, a sign of unscaled data."""

from smdebug.rules import Rule


class ConfidentTooEarly(Rule):
    """Fires where a score is larger than `largest` in a step before `before`."""

    def __init__(self, base_trial, largest: float, before: int):
        super().__init__(base_trial)
        self.largest, self.before = largest, before

    def invoke_at_step(self, step):
        if step >= self.before:
            return False
        (name,) = self.base_trial.tensor_names(collection="scores")
        score = self.base_trial.tensor(name).reduction_value(step, "max", abs=True).item()
        self.watch(name, step, score, self.largest)
        return score > self.largest
