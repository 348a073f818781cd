// The confusion matrix of labels and predictions at one step.

import { ApiError, ask, type Confusion } from "../api";
import { choiceOf, fill, h } from "../dom";
import { drawGrid } from "../heat_map";
import { row, table } from "../parts";
import { showStep } from "./controls";
import type { Picture, SharedChoices } from "./picture";
import { findNamed } from "./run_contents";

export function buildConfusion(shared: SharedChoices): Picture {
  const chosen = { labels: "", predictions: "" };
  return {
    kind: "confusion",
    ofRun: true,
    isOffered: () => true,
    showControls: (run, changed) => {
      chosen.labels ||= findNamed(run, "labels");
      chosen.predictions ||= findNamed(run, "predictions");
      const names = run.tensors.map((each) => each.name);
      const choices = [
        choiceOf("Labels", names, chosen, "labels", changed),
        choiceOf("Predictions", names, chosen, "predictions", changed),
      ];
      return [...(chosen.labels && chosen.predictions ? choices : []), showStep(shared, changed)];
    },
    draw: async ({ path }, into, isCurrent) => {
      if (!chosen.labels || !chosen.predictions) {
        throw new ApiError(
          "Save the collections labels and predictions to see which classes are taken for which.",
          404,
        );
      }
      const found = await ask<Confusion>(`${path}/tensors/confusion`, { ...chosen, step: shared.step });
      if (isCurrent()) fill(into, showMatrix(found));
    },
  };
}

function showMatrix({ counts, step }: Confusion): HTMLElement {
  const classes = counts.map((_, index) => String(index));
  const grid = drawGrid({
    title: `Labels × predictions at step ${step}`,
    values: counts,
    rows: classes.map((each) => `label ${each}`),
    columns: classes,
    columnLabel: "predicted as",
  });
  const rows = counts.map((each, index) => row(index, each));
  return h("div", {}, grid, table(["label", ...classes], rows, { class: "numbers" }));
}
