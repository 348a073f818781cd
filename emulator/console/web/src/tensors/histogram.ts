// The spread of a tensor's values over steps.

import { ask, type Histogram } from "../api";
import { choice, fill, h } from "../dom";
import { drawGrid } from "../heat_map";
import { quiet } from "../parts";
import { showModes } from "./controls";
import { arrangeBins, nameSteps, placeFirings } from "./figures";
import type { Picture, SharedChoices } from "./picture";

const SCALES: [value: string, text: string][] = [
  ["magnitude", "magnitude (powers of ten)"],
  ["value", "value"],
];

export function buildHistogram(shared: SharedChoices): Picture {
  let scale = "magnitude";
  return {
    kind: "histogram",
    ofRun: false,
    isOffered: () => true,
    showControls: (run, changed) => [
      choice("Scale", SCALES, scale, (value) => {
        scale = value;
        changed();
      }),
      showModes(shared, run, changed),
    ],
    draw: async ({ path, tensors, firings }, into, isCurrent) => {
      const tensor = tensors.at(-1) ?? "";
      const asked = scale;
      const found = await ask<Histogram>(`${path}/tensors/histogram`, { tensor, scale: asked, mode: shared.mode });
      if (!isCurrent()) return;
      const bins = arrangeBins(found, asked);
      const zeros = found.counts.reduce((sum, each) => sum + each.zero, 0);
      const notFinite = found.counts.reduce((sum, each) => sum + each.notFinite, 0);
      const grid = drawGrid({
        title: `${tensor}: share of values by ${asked}`,
        values: bins.map((bin) => bin.values),
        rows: bins.map((bin) => bin.label),
        columns: nameSteps(found.steps, found.modes),
        columnLabel: "step",
        marks: placeFirings(firings, found.steps),
      });
      const notes = [
        zeros && asked === "magnitude" ? quiet(`${zeros} values are 0 and have no magnitude.`) : null,
        notFinite ? quiet(`${notFinite} values are NaN or infinite.`) : null,
      ];
      fill(into, h("div", {}, grid, notes));
    },
  };
}
