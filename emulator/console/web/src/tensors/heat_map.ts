// A reduction of all tensors of a collection over steps.

import { ask, type HeatMap } from "../api";
import { choice, debounce, fill, h } from "../dom";
import { HeatMapPlot } from "../heat_map";
import { showModes, showReductions } from "./controls";
import { filterRows, nameSteps, placeFirings, suitsLogarithm, type Firing } from "./figures";
import type { Picture, SharedChoices } from "./picture";
import { chooseCollection } from "./run_contents";

// What comes first may be few of many steps; then as many as fit a wide screen.
const COLUMNS = [24, 120];
// Rows that are read a second time, more closely: of more the first look takes long enough.
const MOST_READ_CLOSELY = 2000;

interface Shown {
  found: HeatMap;
  title: string;
  firings: Firing[];
  into: Element;
}

export function buildHeatMap(shared: SharedChoices): Picture {
  let collection = "gradients";
  let plot: HeatMapPlot | null = null;
  let shown: Shown | null = null;
  const filter = h("input", {
    type: "search",
    placeholder: "rows whose name has …",
    "aria-label": "Filter rows",
    input: debounce(() => {
      if (filter.isConnected) show();
    }, 100),
  });

  function show(): void {
    if (shown === null) return;
    const { found, title, firings, into } = shown;
    const { rows, values } = filterRows(found, filter.value);
    if (!plot?.element.isConnected) fill(into, (plot = new HeatMapPlot()).element);
    plot.show({
      title: rows.length < found.known ? `${title}, ${rows.length} of ${found.known} tensors` : title,
      values,
      rows,
      columns: nameSteps(found.steps, found.modes),
      columnLabel: "step",
      logarithmic: suitsLogarithm(values),
      marks: placeFirings(firings, found.steps),
    });
  }

  return {
    kind: "heat map",
    ofRun: true,
    isOffered: () => true,
    showControls: (run, changed) => {
      collection = chooseCollection(run, collection);
      const collections = run.collections.filter((each) => each.tensors.length).map((each) => each.name);
      return [
        showReductions(shared, "abs_mean", changed),
        choice("Collection", collections, collection, (value) => {
          collection = value;
          changed();
        }),
        filter,
        showModes(shared, run, changed),
      ];
    },
    draw: async ({ path, firings }, into, isCurrent) => {
      const { reduction, mode } = shared;
      const title = `${collection}: ${reduction || "abs_mean"}`;
      for (const columns of COLUMNS) {
        const found = await ask<HeatMap>(`${path}/tensors/heat-map`, { collection, reduction, mode, columns });
        if (!isCurrent()) return;
        shown = { found, title, firings, into };
        show();
        if (found.steps.length < columns || found.tensors.length > MOST_READ_CLOSELY) return;
      }
    },
    // The rows of one run, or of one collection, are not those of the next.
    close: () => {
      shown = null;
    },
  };
}
