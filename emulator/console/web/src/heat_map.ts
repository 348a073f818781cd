// Heat maps: a canvas with the names of its rows beside it, and the cell that is looked at in words.

import { fill, h } from "./dom";
import { formatNumber } from "./format";
import { chooseLabelled, shortenNames } from "./row_names";

// Viridis, in nine stops: even to the eye, also without colours.
const VIRIDIS: [number, number, number][] = [
  [68, 1, 84],
  [71, 44, 122],
  [59, 81, 139],
  [44, 113, 142],
  [33, 144, 141],
  [39, 173, 129],
  [92, 200, 99],
  [170, 220, 50],
  [253, 231, 37],
];
// Of a logarithmic scale.
const ZERO = [0, 0, 0];
const ROW_PX = 16;
const LABEL_PX = 14;
// A letter of a label's font is about so wide.
const LETTER_REM = 0.47;
const NARROW = matchMedia("(max-width: 44rem)");
const [LOWEST_PX, HIGHEST_PX] = [160, 640];
// Rows that a press of Page Up or Page Down passes.
const PAGE_ROWS = 20;

/** The colour of a share from 0 to 1. */
export function pickColour(share: number): [number, number, number] {
  const at = Math.min(Math.max(share, 0), 1) * (VIRIDIS.length - 1);
  const low = VIRIDIS[Math.floor(at)] ?? [0, 0, 0];
  const high = VIRIDIS[Math.ceil(at)] ?? low;
  const part = at - Math.floor(at);
  return [0, 1, 2].map((index) => Math.round((low[index] ?? 0) * (1 - part) + (high[index] ?? 0) * part)) as [
    number,
    number,
    number,
  ];
}

export interface Grid {
  title: string;
  /** A row from top to bottom; null and what is not a number is left empty. */
  values: (number | string | null)[][];
  rows: string[];
  columns: string[];
  columnLabel: string;
  /** Show exponents of ten of what is above 0. */
  logarithmic?: boolean;
  marks?: { column: number; text: string }[];
}

/** A heat map of every row. The cell that is pointed at, or reached by arrow keys, is described in words. */
export class HeatMapPlot {
  readonly element: HTMLElement;
  private readonly caption = h("figcaption");
  private readonly canvas = h("canvas", { class: "grid", role: "img", tabindex: "0" });
  private readonly names = h("div", { class: "names", "aria-hidden": "true" });
  private readonly marks = h("div");
  private readonly tip = h("div", { class: "tip", "aria-hidden": "true", hidden: true });
  private readonly spot = h("div", { class: "spot", hidden: true });
  private readonly ends = h("p", { class: "ends quiet" });
  private readonly legend = h("p", { class: "quiet legend" });
  private readonly said = h("output");
  private readonly area = h("div", { class: "area" }, this.canvas, this.marks, this.spot, this.tip);
  private readonly cells = h("div", { class: "cells" }, this.names, this.area);
  private grid: Grid = { title: "", values: [], rows: [], columns: [], columnLabel: "" };
  private cell: { row: string; column: string } | null = null;
  private at: [row: number, column: number] = [0, 0];

  constructor() {
    this.element = h("figure", { class: "plot" }, this.caption, this.cells, this.ends, this.legend, this.said);
    this.canvas.addEventListener("pointermove", (event) => {
      const box = this.canvas.getBoundingClientRect();
      this.look(
        Math.floor(((event.clientY - box.top) / box.height) * this.height),
        Math.floor(((event.clientX - box.left) / box.width) * this.width),
      );
    });
    this.canvas.addEventListener("pointerleave", () => this.hideCell());
    this.canvas.addEventListener("blur", () => this.hideCell());
    this.canvas.addEventListener("keydown", (event) => {
      const [row, column] = this.at;
      const moves: Record<string, [number, number]> = {
        ArrowUp: [row - 1, column],
        ArrowDown: [row + 1, column],
        ArrowLeft: [row, column - 1],
        ArrowRight: [row, column + 1],
        PageUp: [row - PAGE_ROWS, column],
        PageDown: [row + PAGE_ROWS, column],
        Home: [0, column],
        End: [this.height - 1, column],
      };
      const move = moves[event.key];
      if (!move) return;
      event.preventDefault();
      this.look(...move);
      this.scrollToCell();
    });
  }

  private get width(): number {
    return Math.max(1, this.grid.columns.length);
  }
  private get height(): number {
    return Math.max(1, this.grid.rows.length);
  }

  /** Show a grid in place of the one before: what was looked at and scrolled to stays. */
  show(grid: Grid): void {
    this.grid = grid;
    const { known, low, high, zeros } = this.paint();
    const shown = (value: number): string => (grid.logarithmic ? `10^${value.toFixed(1)}` : formatNumber(value));
    fill(this.caption, grid.title);
    this.canvas.setAttribute(
      "aria-label",
      `${grid.title}: ${grid.rows.length} × ${grid.columns.length} cells${known ? ` from ${shown(low)} to ${shown(high)}` : ""}`,
    );
    this.placeNames();
    fill(
      this.marks,
      (grid.marks ?? []).map((each) => {
        const element = h("span", { class: "firing", title: each.text }, h("span", {}, each.text));
        element.style.left = `${((each.column + 0.5) / this.width) * 100}%`;
        return element;
      }),
    );
    fill(
      this.ends,
      h("span", {}, grid.columns[0] ?? ""),
      h("span", {}, grid.columnLabel),
      h("span", {}, this.width > 1 ? (grid.columns.at(-1) ?? "") : ""),
    );
    fill(
      this.legend,
      zeros ? [h("span", { class: "swatch zero", "aria-hidden": "true" }), "0"] : null,
      known ? [shown(low), h("span", { class: "bar", "aria-hidden": "true" }), shown(high)] : null,
    );
    this.showAgain(known || zeros);
  }

  private paint(): { known: boolean; low: number; high: number; zeros: boolean } {
    const { values, logarithmic } = this.grid;
    const scale = (value: number | string | null): number | null => {
      if (typeof value !== "number" || !Number.isFinite(value)) return null;
      // What is 0 has no exponent: it is below all others.
      return logarithmic ? Math.log10(Math.max(value, 0)) : value;
    };
    const numbers = values.map((row) => row.map(scale));
    let [low, high, zeros] = [Infinity, -Infinity, false];
    for (const value of numbers.flat()) {
      if (value === -Infinity) zeros = true;
      else if (value !== null) [low, high] = [Math.min(low, value), Math.max(high, value)];
    }
    this.canvas.width = this.width;
    this.canvas.height = this.height;
    const ctx = this.canvas.getContext("2d");
    if (ctx && (low <= high || zeros)) {
      const image = ctx.createImageData(this.width, this.height);
      numbers.forEach((row, y) =>
        row.forEach((value, x) => {
          if (value === null) return;
          const rgb = value === -Infinity ? ZERO : pickColour(high > low ? (value - low) / (high - low) : 0.5);
          image.data.set([...rgb, 255], (y * this.width + x) * 4);
        }),
      );
      ctx.putImageData(image, 0, 0);
    }
    // A row is a pixel at least, or it could not be seen: where there are more, the picture is scrolled.
    this.area.style.height = `${Math.max(Math.min(HIGHEST_PX, Math.max(LOWEST_PX, this.height * ROW_PX)), this.height)}px`;
    return { known: low <= high, low, high, zeros };
  }

  private placeNames(): void {
    const { rows } = this.grid;
    const height = parseFloat(this.area.style.height);
    const short = shortenNames(rows, NARROW.matches ? 16 : 26);
    const longest = short.reduce((most, name) => Math.max(most, name.length), 0);
    this.element.style.setProperty("--names", `${longest * LETTER_REM + 0.25}rem`);
    fill(
      this.names,
      chooseLabelled(rows.length, height, LABEL_PX).map((row) => {
        const label = h("bdi", { title: rows[row] ?? "" }, short[row] ?? "");
        label.style.top = `${((row + 0.5) / this.height) * height}px`;
        return label;
      }),
    );
  }

  private showAgain(known: boolean): void {
    const [row, column] = this.cell
      ? [this.grid.rows.indexOf(this.cell.row), this.grid.columns.indexOf(this.cell.column)]
      : [-1, -1];
    if (row >= 0 && column >= 0) return this.look(row, column);
    this.at = [0, 0];
    this.hideCell();
    this.said.textContent = known ? "Point at a cell, or use the arrow keys." : "There are no numbers to show.";
  }

  private look(row: number, column: number): void {
    this.at = [Math.min(this.height - 1, Math.max(0, row)), Math.min(this.width - 1, Math.max(0, column))];
    const { rows, columns, values, columnLabel } = this.grid;
    this.cell = { row: rows[this.at[0]] ?? "", column: columns[this.at[1]] ?? "" };
    const value = values[this.at[0]]?.[this.at[1]];
    const number = value === null || value === undefined ? "nothing" : formatNumber(value);
    fill(this.said, h("bdi", {}, this.cell.row), `, ${columnLabel} ${this.cell.column}: ${number}`);
    fill(this.tip, h("bdi", {}, this.cell.row), h("br"), `${columnLabel} ${this.cell.column}: ${number}`);
    const [top, left] = [((this.at[0] + 0.5) / this.height) * 100, ((this.at[1] + 0.5) / this.width) * 100];
    this.tip.style.top = `${top}%`;
    // On the side where there is room.
    this.tip.style.left = left < 50 ? `calc(${left}% + 12px)` : "auto";
    this.tip.style.right = left < 50 ? "auto" : `calc(${100 - left}% + 12px)`;
    this.spot.style.cssText = `top: ${(this.at[0] / this.height) * 100}%; left: ${(this.at[1] / this.width) * 100}%; height: ${100 / this.height}%; width: ${100 / this.width}%`;
    this.tip.hidden = this.spot.hidden = false;
  }

  private hideCell(): void {
    this.tip.hidden = this.spot.hidden = true;
  }

  private scrollToCell(): void {
    const y = ((this.at[0] + 0.5) / this.height) * this.area.offsetHeight;
    const { scrollTop, clientHeight } = this.cells;
    if (y < scrollTop + LABEL_PX || y > scrollTop + clientHeight - LABEL_PX)
      this.cells.scrollTop = y - clientHeight / 2;
  }
}

/** A heat map that is drawn once. */
export function drawGrid(grid: Grid): HTMLElement {
  const plot = new HeatMapPlot();
  plot.show(grid);
  return plot.element;
}
