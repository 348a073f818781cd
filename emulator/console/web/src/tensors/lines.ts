// Tensors as lines over steps, with a line for each mode and worker.

import { ask, type Series } from "../api";
import { choice, choiceOf, fill, h } from "../dom";
import { LinePlot } from "../plots";
import { showModes, showReductions } from "./controls";
import { AXES, arrangeLines, describeGaps, placeInTime } from "./figures";
import type { Picture, SharedChoices } from "./picture";

// What comes first may be few of many steps, no more than a first look at a run knows; then more, at last as many as fit a wide screen.
const STEPS = [24, 150, 1000];
const POINTS = 800;

export function buildLines(shared: SharedChoices): Picture {
  const note = h("p", { class: "quiet", "data-note": true });
  let worker = "";
  let plot: LinePlot | null = null;
  let drawn = "";
  const close = (): void => {
    plot?.close();
    plot?.element.remove();
    note.remove();
    plot = null;
  };
  return {
    kind: "lines",
    ofRun: false,
    isOffered: () => true,
    showControls: (run, changed) => [
      showReductions(shared, "value (mean)", changed),
      showModes(shared, run, changed),
      run.workers.length > 1
        ? choice("Worker", [["", "all"], ...run.workers], worker, (value) => {
            worker = value;
            changed();
          })
        : null,
      choiceOf("Over", AXES, shared, "axis", changed),
    ],
    draw: async ({ path, tensors, firings }, into, isCurrent) => {
      const { reduction, mode, axis } = shared;
      const x = AXES.find(([each]) => each === axis)?.[1] ?? "global step";
      for (const most of STEPS) {
        const query = { tensor: tensors, reduction, mode, worker, most, points: POINTS, times: axis ? 1 : "" };
        const { series } = await ask<Series>(`${path}/tensors/series`, query);
        if (!isCurrent()) return;
        if (!plot?.element.isConnected || drawn !== axis) {
          close();
          drawn = axis;
          // A firing is at a step.
          const marks = axis ? [] : firings;
          plot = new LinePlot({ title: "Tensors over steps", x, time: axis === "time", firings: marks, height: 320 });
          fill(into, plot.element, note);
        }
        const lines = arrangeLines(series);
        const times = series.map((line) => line.timesMs ?? []);
        plot.show(axis ? placeInTime(lines, times, axis) : lines);
        note.textContent = describeGaps(series);
        if (series.every((line) => line.read >= line.known)) return;
      }
    },
    close,
  };
}
