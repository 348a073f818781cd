// Lines over steps or time (uPlot) and heat maps (a canvas), in the colours of the page's theme.

import uPlot from "uplot";

import { h } from "./dom";
import { formatNumber } from "./format";

// Okabe and Ito's colours, told apart by those who see fewer; dashes tell them apart without any.
const COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#b8860b", "#56b4e9", "#7a5195", "#e69f00"];
const DASHES = [[], [8, 4], [2, 3], [10, 3, 2, 3], [5, 2], [1, 2], [12, 4], [6, 2, 2, 2]];

export interface PlottedLine {
  label: string;
  at: number[];
  values: (number | null)[];
  low?: (number | null)[];
  high?: (number | null)[];
}
export interface PlotOptions {
  title: string;
  x: string;
  /** Seconds since 1970 rather than numbers. */
  time?: boolean;
  logarithmic?: boolean;
  threshold?: number | null;
  /** Steps at which a rule fired, with its name. */
  firings?: { step: number; rule: string }[];
  height?: number;
  /** Plots of one name share their cursor and what is zoomed into. */
  sync?: string;
  /** What the table says where there is no number. */
  absent?: string;
}

function colour(property: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(property).trim();
}

/** Put the lines on one axis: the steps of all, and gaps where a line has none. */
export function joinLines(lines: PlottedLine[]): { at: number[]; columns: (number | null | undefined)[][] } {
  const at = [...new Set(lines.flatMap((line) => line.at))].sort((a, b) => a - b);
  const column = (line: PlottedLine, values: (number | null)[]): (number | null | undefined)[] => {
    const known = new Map(line.at.map((step, index) => [step, values[index] ?? null]));
    // undefined is a step of others, over which the line goes on; null is a number that is none, and a gap.
    return at.map((step) => (known.has(step) ? known.get(step) : undefined));
  };
  const columns = lines.flatMap((line) =>
    line.low && line.high ? [line.values, line.low, line.high].map((values) => column(line, values)) : [column(line, line.values)],
  );
  return { at, columns };
}

// Titles of plots whose tables are open: a plot that is made anew with its surroundings keeps it so.
const openTables = new Set<string>();

/** A plot with its values as a table, for those who do not see it, and for whoever wants the numbers. */
export class LinePlot {
  readonly element: HTMLElement;
  private readonly canvas = h("div", { class: "canvas" });
  private readonly table = h("table");
  private readonly details: HTMLDetailsElement;
  private plot: uPlot | null = null;
  private lines: PlottedLine[] = [];
  private span: [number, number] | undefined;
  private readonly sizes: ResizeObserver;
  private readonly theme = matchMedia("(prefers-color-scheme: dark)");
  private readonly redraw = (): void => this.draw();

  constructor(private readonly options: PlotOptions) {
    this.details = h("details", { open: openTables.has(options.title), toggle: () => {
      if (this.details.open) openTables.add(options.title); else openTables.delete(options.title);
      this.fillTable();
    } }, h("summary", {}, "Values as a table"));
    this.details.append(h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": `Values of ${options.title}` }, this.table));
    this.canvas.setAttribute("role", "img");
    this.element = h("figure", { class: "plot" }, h("figcaption", {}, options.title), this.canvas, this.details);
    this.sizes = new ResizeObserver(() => this.plot?.setSize(this.size()));
    this.sizes.observe(this.canvas);
    this.theme.addEventListener("change", this.redraw);
    document.addEventListener("theme", this.redraw);
  }

  /** Show lines, from end to end of a span where one is given. */
  show(lines: PlottedLine[], span?: [number, number]): void {
    this.lines = lines;
    this.span = span;
    this.draw();
    if (this.details.open) this.fillTable();
  }

  close(): void {
    this.sizes.disconnect();
    this.theme.removeEventListener("change", this.redraw);
    document.removeEventListener("theme", this.redraw);
    this.plot?.destroy();
    this.plot = null;
  }

  private size(): { width: number; height: number } {
    return { width: Math.max(200, this.canvas.clientWidth), height: this.options.height ?? 240 };
  }

  private draw(): void {
    const { at, columns } = joinLines(this.lines);
    const spread = this.lines.map((line) => (line.low && line.high ? 3 : 1));
    const series: uPlot.Series[] = [{ label: this.options.x }];
    const bands: uPlot.Band[] = [];
    this.lines.forEach((line, index) => {
      const stroke = COLOURS[index % COLOURS.length] ?? "#888";
      const few = line.at.length <= 60;
      series.push({ label: line.label, stroke, width: 2, dash: DASHES[index % DASHES.length] ?? [], points: { show: few, size: 5 },
        value: (_, value) => formatNumber(value) });
      if (spread[index] === 3) {
        const first = series.length;
        for (const which of ["lowest", "highest"]) series.push({ label: `${line.label}, ${which}`, stroke: "transparent", points: { show: false }, value: (_, value) => formatNumber(value) });
        bands.push({ series: [first + 1, first], fill: `${stroke}33` });
      }
    });
    this.plot?.destroy();
    this.canvas.replaceChildren();
    const shown = this.lines.map((line) => `${line.label}: ${line.at.length} values, last ${formatNumber(line.values.at(-1))}`).join("; ");
    this.canvas.setAttribute("aria-label", `${this.options.title}. ${shown || "No values yet."}`);
    if (!at.length) {
      this.canvas.append(h("p", { class: "quiet" }, "No values yet."));
      this.plot = null;
      return;
    }
    const axis: uPlot.Axis = { stroke: colour("--quiet"), grid: { stroke: colour("--line"), width: 1 }, ticks: { stroke: colour("--line") }, font: "12px system-ui, sans-serif" };
    const positive = columns.every((column) => column.every((value) => value === null || value === undefined || value > 0));
    const logarithmic = this.options.logarithmic === true && positive;
    const limit = this.options.threshold;
    this.plot = new uPlot(
      {
        ...this.size(),
        series,
        bands,
        legend: { show: this.lines.length <= 8, live: true },
        scales: {
          x: { time: this.options.time === true },
          y: logarithmic ? { distr: 3 } : { range: (_, low, high) => this.range(low, high) },
        },
        axes: [{ ...axis, label: this.options.x, labelSize: 20, labelFont: "12px system-ui, sans-serif" },
          { ...axis, size: 72, values: (_, ticks) => ticks.map((tick) => (tick === null ? "" : formatNumber(tick))) }],
        cursor: { drag: { x: true, y: false }, ...(this.options.sync === undefined ? {} : { sync: { key: this.options.sync } }) },
        hooks: { draw: [(plot) => this.drawMarks(plot, limit, logarithmic)] },
      },
      [at, ...columns] as uPlot.AlignedData,
      this.canvas,
    );
    if (this.span && this.span[1] > this.span[0]) this.plot.setScale("x", { min: this.span[0], max: this.span[1] });
  }

  private range(low: number | null, high: number | null): [number, number] {
    const limit = this.options.threshold;
    const every = [low ?? 0, high ?? 1, ...(typeof limit === "number" ? [limit] : [])];
    const [from, to] = [Math.min(...every), Math.max(...every)];
    const room = (to - from || Math.abs(to) || 1) * 0.06;
    return [from - room, to + room];
  }

  private drawMarks(plot: uPlot, limit: number | null | undefined, logarithmic: boolean): void {
    const { ctx, bbox } = plot;
    ctx.save();
    ctx.strokeStyle = ctx.fillStyle = colour("--bad");
    ctx.font = `${12 * devicePixelRatio}px system-ui, sans-serif`;
    ctx.textAlign = "left";
    ctx.textBaseline = "alphabetic";
    ctx.lineWidth = 1.5 * devicePixelRatio;
    ctx.setLineDash([6 * devicePixelRatio, 4 * devicePixelRatio]);
    if (typeof limit === "number" && (!logarithmic || limit > 0)) {
      const y = plot.valToPos(limit, "y", true);
      if (y >= bbox.top && y <= bbox.top + bbox.height) {
        line(ctx, bbox.left, y, bbox.left + bbox.width, y);
        ctx.fillText(`threshold ${formatNumber(limit)}`, bbox.left + 24 * devicePixelRatio, y - bbox.top > 20 * devicePixelRatio ? y - 4 * devicePixelRatio : y + 14 * devicePixelRatio);
      }
    }
    for (const firing of this.options.firings ?? []) {
      const x = plot.valToPos(firing.step, "x", true);
      if (x < bbox.left - 1 || x > bbox.left + bbox.width + 1) continue;
      line(ctx, x, bbox.top, x, bbox.top + bbox.height);
      ctx.save();
      // On the side where there is room.
      ctx.translate(x > bbox.left + bbox.width / 2 ? x - 12 * devicePixelRatio : x + 5 * devicePixelRatio, bbox.top + 4 * devicePixelRatio);
      ctx.rotate(Math.PI / 2);
      ctx.fillText(firing.rule, 0, 0);
      ctx.restore();
    }
    ctx.restore();
  }

  private fillTable(): void {
    if (!this.details.open) return;
    const { at } = joinLines(this.lines);
    const known = this.lines.map((line) => new Map(line.at.map((step, index) => [step, line.values[index]])));
    this.table.replaceChildren(
      h("thead", {}, h("tr", {}, h("th", { scope: "col" }, this.options.x), this.lines.map((line) => h("th", { scope: "col" }, h("bdi", {}, line.label))))),
      h("tbody", {}, at.slice(0, 2000).map((step) => h("tr", {}, h("th", { scope: "row" }, step), known.map((values) => h("td", {}, values.has(step) ? String(values.get(step) ?? this.options.absent ?? "not finite") : ""))))),
    );
  }
}

function line(ctx: CanvasRenderingContext2D, fromX: number, fromY: number, toX: number, toY: number): void {
  ctx.beginPath();
  ctx.moveTo(fromX, fromY);
  ctx.lineTo(toX, toY);
  ctx.stroke();
}

// Viridis, in nine stops: even to the eye, also without colours.
const VIRIDIS: [number, number, number][] = [
  [68, 1, 84], [71, 44, 122], [59, 81, 139], [44, 113, 142], [33, 144, 141], [39, 173, 129], [92, 200, 99], [170, 220, 50], [253, 231, 37],
];

/** The colour of a share from 0 to 1. */
export function pickColour(share: number): [number, number, number] {
  const at = Math.min(Math.max(share, 0), 1) * (VIRIDIS.length - 1);
  const low = VIRIDIS[Math.floor(at)] ?? [0, 0, 0];
  const high = VIRIDIS[Math.ceil(at)] ?? low;
  const part = at - Math.floor(at);
  return [0, 1, 2].map((index) => Math.round((low[index] ?? 0) * (1 - part) + (high[index] ?? 0) * part)) as [number, number, number];
}

export interface Grid {
  title: string;
  /** A row from top to bottom; null and what is no number is left empty. */
  values: (number | string | null)[][];
  rows: string[];
  columns: string[];
  rowLabel: string;
  columnLabel: string;
  /** Show exponents of ten of what is above 0. */
  logarithmic?: boolean;
  marks?: { column: number; text: string }[];
}

/** A heat map with the cell that is pointed at, or reached by arrow keys, told in words. */
export function drawGrid(grid: Grid): HTMLElement {
  const scale = (value: number | string | null): number | null => {
    if (typeof value !== "number" || !Number.isFinite(value)) return null;
    if (!grid.logarithmic) return value;
    return value > 0 ? Math.log10(value) : null;
  };
  const numbers = grid.values.map((row) => row.map(scale));
  const known = numbers.flat().filter((value): value is number => value !== null);
  const low = known.reduce((a, b) => Math.min(a, b), Infinity);
  const high = known.reduce((a, b) => Math.max(a, b), -Infinity);
  const width = Math.max(1, grid.columns.length);
  const height = Math.max(1, grid.rows.length);
  const canvas = h("canvas", { width, height, class: "grid", role: "img", tabindex: "0" });
  const ctx = canvas.getContext("2d");
  if (ctx && known.length) {
    const image = ctx.createImageData(width, height);
    numbers.forEach((row, y) => row.forEach((value, x) => {
      if (value === null) return;
      const [red, green, blue] = pickColour(high > low ? (value - low) / (high - low) : 0.5);
      image.data.set([red, green, blue, 255], (y * width + x) * 4);
    }));
    ctx.putImageData(image, 0, 0);
  }
  const said = h("output", {}, known.length ? "Point at a cell, or use the arrow keys." : "There are no numbers to show.");
  let [row, column] = [0, 0];
  const say = (): void => {
    const value = grid.values[row]?.[column];
    said.textContent = `${grid.rows[row] ?? ""}, ${grid.columnLabel} ${grid.columns[column] ?? ""}: ${value === null || value === undefined ? "nothing" : formatNumber(value)}`;
  };
  const shownLow = grid.logarithmic ? `10^${low.toFixed(1)}` : formatNumber(low);
  const shownHigh = grid.logarithmic ? `10^${high.toFixed(1)}` : formatNumber(high);
  canvas.setAttribute("aria-label", `${grid.title}: ${height} × ${width} cells${known.length ? ` from ${shownLow} to ${shownHigh}` : ""}`);
  canvas.addEventListener("pointermove", (event) => {
    const box = canvas.getBoundingClientRect();
    row = Math.min(height - 1, Math.max(0, Math.floor(((event.clientY - box.top) / box.height) * height)));
    column = Math.min(width - 1, Math.max(0, Math.floor(((event.clientX - box.left) / box.width) * width)));
    say();
  });
  canvas.addEventListener("keydown", (event) => {
    const moves: Record<string, [number, number]> = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
    const move = moves[event.key];
    if (!move) return;
    event.preventDefault();
    row = Math.min(height - 1, Math.max(0, row + move[0]));
    column = Math.min(width - 1, Math.max(0, column + move[1]));
    say();
  });
  canvas.style.height = `${Math.min(640, Math.max(160, height * 16))}px`;
  const marks = (grid.marks ?? []).map((each) => {
    const element = h("span", { class: "firing", title: each.text }, h("span", {}, each.text));
    element.style.left = `${((each.column + 0.5) / width) * 100}%`;
    return element;
  });
  const bar = h("span", { class: "bar", "aria-hidden": "true" });
  const ends = [grid.columns[0] ?? "", grid.columns.at(-1) ?? ""];
  return h("figure", { class: "plot" },
    h("figcaption", {}, grid.title),
    h("div", { class: "cells" }, h("span", { class: "above" }, h("bdi", {}, grid.rows[0] ?? "")), h("div", { class: "area" }, canvas, marks),
      h("span", { class: "above" }, h("bdi", {}, height > 1 ? grid.rows.at(-1) ?? "" : ""))),
    h("p", { class: "ends quiet" }, h("span", {}, ends[0] ?? ""), h("span", {}, grid.columnLabel), h("span", {}, width > 1 ? ends[1] ?? "" : "")),
    known.length ? h("p", { class: "quiet legend" }, shownLow, bar, shownHigh) : null,
    said,
  );
}
