// Controls that several pictures of tensors have.

import type { Run } from "../api";
import { choiceOf, h } from "../dom";
import type { SharedChoices } from "./picture";

const REDUCTIONS = ["mean", "abs_mean", "min", "max", "std", "l2", "abs_max", "variance", "sum", "l1"];

/** A select of reductions; the empty one has a text of its own. */
export function showReductions(shared: SharedChoices, empty: string, changed: () => void): HTMLElement {
  return choiceOf("Reduction", [["", empty], ...REDUCTIONS], shared, "reduction", changed);
}

/** A select of modes; none where the run has one. */
export function showModes(shared: SharedChoices, run: Run, changed: () => void): HTMLElement | null {
  if (run.modes.length < 2) return null;
  return choiceOf("Mode", [["", "all"], ...run.modes], shared, "mode", changed);
}

export function showStep(shared: SharedChoices, changed: () => void): HTMLElement {
  const change = (): void => {
    shared.step = input.value;
    changed();
  };
  const input = h("input", {
    type: "number",
    min: "0",
    placeholder: "last",
    value: shared.step,
    "aria-label": "Step",
    change,
  });
  return h("label", {}, "Step ", input);
}
