"""Commentary of the study's page, beside its tables."""

INTRODUCTION = """# The rules over healthy and sick trainings

This page is written by `python -m examples.rule_study > docs/rules-study.md`: it trains twenty small models on the data
that scikit-learn brings along, with the hook saving everything at every fifth step and all of validation, which comes
at every fifteenth, and has all 21 rules judge each run to its first finding. Every finding is computed a second time
from the saved tensors by a plain formula of numpy, as AWS documents the rule.

In the tables stands the global step at which a rule fired, `.` where it found no issue, and nothing where the run has
nothing for it to look at or the rule is for another framework; `(?)` marks a step that the formula does not confirm.
The steps differ a little from one machine to another."""

READING = """## Reading

A finding in a healthy training is not a fault of the rule: AWS's formula says the same. It is that AWS's defaults are
made for long trainings whose steps are saved seldom. The defaults here are AWS's nevertheless, and each finding ends
with what to do, which names the parameter. In short: with the defaults Overfit and Overtraining fire in nearly every
training that goes well to its end; the others are right, but for those named here.

* **Overfit** divides by the training loss. A loss near 0 makes any gap large, so a network that has learned its task
  fires. Choose a ratio_threshold for the loss that you expect (20 here, where losses end at a hundredth), patience 3,
  and a start_step behind the first epoch.
* **Overtraining** compares losses of single batches, which are noisy, with delta 0.01 in the unit of the loss: a loss
  that has come below 0.05 can hardly improve by that. Choose a patience of some epochs, and delta 0. It then fires
  where the loss stands still, and in a network that has nothing left to learn.
* **ClassImbalance** counts mispredictions from the first step on, when every network mispredicts. Let it begin later:
  start_step, which every rule takes. It then fires wherever some class is never learned, whatever the reason.
* **PoorWeightInitialization** takes a bias before a BatchNorm for a dead gradient: what is added before the mean is
  subtracted has a gradient of 0, but for rounding. A distribution_range of 1e-9 passes over it. Plain layers of ReLU
  in a row shrink the variance of what they are given with PyTorch's own initialization: five make a ratio of 70, and
  still learn.
* **VanishingGradient** meets the same biases, and no threshold tells them from gradients that really vanish: here both
  are around 1e-10. Build layers before a BatchNorm with `bias=False`; it costs nothing.
* **LossNotDecreasing** is quiet in healthy trainings, and with its defaults misses networks whose loss falls a little
  and then stands still below the first one for less than num_steps. Judging validation over fewer steps
  finds others. Where the loss of batches is judged, raise increase_threshold_percent.
* **SimilarAcrossRuns** finds constants: weights of a BatchNorm start at 1, hyperparameters are the same. Compare
  weights, and not in the first steps.
* **Confusion** and **FeatureImportanceOverweight** judge the first round of boosting like the last. Begin later; with
  three or four features in use, three of them always weigh most.
* **TensorVariance** has no defaults, and finds nothing without thresholds.
* **UnchangedTensor**, **WeightUpdateRatio**, **DeadRelu**, **AllZero**, **ExplodingTensor**, **SaturatedActivation**,
  **CheckInputImages** and **TreeDepth** fire in none of the healthy trainings, and in all sick ones that are theirs.
  StalledTrainingRule has nothing to say of a run that has ended; NLPSequenceRatio of runs without sequences.

## With chosen parameters

The same runs, judged with these instead:"""
