// A tensor at one step: its statistics, and a part of its numbers.

import { ask, type Values } from "../api";
import { fill, h, name } from "../dom";
import { formatNumber } from "../format";
import { drawGrid } from "../heat_map";
import { pairs, scrollable, table } from "../parts";
import { showStep } from "./controls";
import { listFacts } from "./figures";
import type { Picture, SharedChoices } from "./picture";

export function buildValues(shared: SharedChoices): Picture {
  return {
    kind: "values",
    ofRun: false,
    isOffered: () => true,
    showControls: (_, changed) => [showStep(shared, changed)],
    draw: async ({ path, tensors }, into, isCurrent) => {
      const found = await ask<Values>(`${path}/tensors/values`, { tensor: tensors.at(-1) ?? "", step: shared.step });
      if (isCurrent()) fill(into, showValues(found));
    },
  };
}

function showValues(found: Values): HTMLElement {
  const plane = (found.plane ?? []).map((row) =>
    row.map((value) => (typeof value === "boolean" ? Number(value) : value)),
  );
  return h(
    "div",
    {},
    h("h2", {}, name(found.tensor)),
    pairs(listFacts(found)),
    found.tooLarge ? h("p", { class: "problem" }, found.tooLarge) : null,
    found.texts
      ? h(
          "ul",
          {},
          found.texts.map((text) => h("li", {}, name(text))),
        )
      : null,
    plane.length > 1 && (plane[0]?.length ?? 0) > 1 ? drawPlane(plane, found.index ?? []) : null,
    plane.length ? showTable(plane) : null,
  );
}

function drawPlane(plane: (number | string)[][], index: number[]): HTMLElement {
  return drawGrid({
    title: `Values${index.length ? ` at ${index.join(", ")}` : ""}`,
    values: plane,
    rows: plane.map((_, row) => `row ${row}`),
    columns: (plane[0] ?? []).map((_, column) => String(column)),
    columnLabel: "column",
  });
}

function showTable(plane: (number | string)[][]): HTMLElement {
  const rows = plane.map((row) =>
    h(
      "tr",
      {},
      row.map((value) => h("td", {}, formatNumber(value))),
    ),
  );
  return scrollable("Values", table([], rows, { class: "numbers" }));
}
