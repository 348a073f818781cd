// The importance of XGBoost's features over rounds.

import { ask, type HeatMap } from "../api";
import { choice, fill } from "../dom";
import { drawGrid } from "../heat_map";
import { quiet } from "../parts";
import { LinePlot } from "../plots";
import { arrangeFeatures, placeFirings } from "./figures";
import type { Picture } from "./picture";
import { listImportances } from "./run_contents";

const MOST_LINES = 8;

export function buildImportance(): Picture {
  let kind = "";
  let plot: LinePlot | null = null;
  const close = (): void => {
    plot?.close();
    plot?.element.remove();
    plot = null;
  };
  return {
    kind: "importance",
    ofRun: true,
    isOffered: (run) => listImportances(run).length > 0,
    showControls: (run, changed) => {
      const kinds = listImportances(run);
      if (!kinds.includes(kind)) kind = kinds[0] ?? "";
      return [
        choice("Importance by", kinds, kind, (value) => {
          kind = value;
          changed();
        }),
      ];
    },
    draw: async ({ path, firings }, into, isCurrent) => {
      const by = kind;
      const prefix = `feature_importance/${by}/`;
      const found = await ask<HeatMap>(`${path}/tensors/heat-map`, { regex: `^${prefix}`, reduction: "mean" });
      if (!isCurrent()) return;
      const features = arrangeFeatures(found, prefix);
      const grid = drawGrid({
        title: `Features × rounds by ${by}`,
        values: features.map((each) => each.values),
        rows: features.map((each) => each.feature),
        columns: found.steps.map(String),
        columnLabel: "step",
        marks: placeFirings(firings, found.steps),
      });
      const note = quiet(
        "The most important above, by the last round; where no tree uses a feature, its cells are empty.",
        features.length > MOST_LINES ? ` The lines are of the first ${MOST_LINES}.` : "",
        found.known > features.length ? ` ${features.length} of ${found.known} features are shown.` : "",
      );
      close();
      plot = new LinePlot({
        title: `Importance of features by ${by}, over rounds`,
        x: "global step",
        firings,
        height: 320,
      });
      fill(into, plot.element, grid, note);
      plot.show(
        features.slice(0, MOST_LINES).map((each) => ({
          label: each.feature,
          at: found.steps,
          values: each.values.map((value) => (typeof value === "number" ? value : null)),
        })),
      );
    },
    close,
  };
}
