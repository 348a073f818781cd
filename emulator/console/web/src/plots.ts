// Lines over steps or time (uPlot), in the colours of the page's theme.

import uPlot from "uplot";

import { button, h, name } from "./dom";
import { formatNumber } from "./format";
import { styleLines } from "./lines";
import { quiet, row, scrollable, tableHead } from "./parts";
import {
  type PlottedLine,
  coverDecades,
  keepDecades,
  smoothValues,
  spreadOne,
  stackLabels,
  writeCsv,
} from "./plot_data";

// Of more lines the names would take more room than the picture.
const MOST_NAMED = 40;

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

function readTheme(): "light" | "dark" {
  return getComputedStyle(document.documentElement).colorScheme === "dark" ? "dark" : "light";
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
    line.low && line.high
      ? [line.values, line.low, line.high].map((values) => column(line, values))
      : [column(line, line.values)],
  );
  return { at, columns };
}

// Titles of plots whose tables are open: a plot that is made again with its surroundings keeps its table open.
const openTables = new Set<string>();
// What was chosen for a plot of this title.
const chosenScales = new Map<string, boolean>();
const chosenSmoothing = new Map<string, number>();
const MOST_SMOOTHING = 0.99;

/** A plot with its values as a table, for those who do not see it, and for whoever wants the numbers. */
export class LinePlot {
  readonly element: HTMLElement;
  private readonly canvas = h("div", { class: "canvas" });
  private readonly table = h("table");
  private readonly note = h("span", { class: "quiet", role: "status" });
  private readonly details: HTMLDetailsElement;
  private plot: uPlot | null = null;
  private lines: PlottedLine[] = [];
  private span: [number, number] | undefined;
  private readonly sizes: ResizeObserver;
  private readonly theme = matchMedia("(prefers-color-scheme: dark)");
  private readonly redraw = (): void => this.draw();

  constructor(private readonly options: PlotOptions) {
    this.details = h(
      "details",
      {
        open: openTables.has(options.title),
        toggle: () => {
          if (this.details.open) openTables.add(options.title);
          else openTables.delete(options.title);
          this.fillTable();
        },
      },
      h("summary", {}, "Values as a table"),
    );
    this.details.append(scrollable(`Values of ${options.title}`, this.table));
    this.canvas.setAttribute("role", "img");
    this.element = h(
      "figure",
      { class: "plot" },
      h("figcaption", {}, options.title),
      this.canvas,
      this.buildTools(),
      this.details,
    );
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

  private buildTools(): HTMLElement {
    const { title } = this.options;
    const turn = (): void => {
      chosenScales.set(title, !this.isLogarithmic());
      scale.setAttribute("aria-pressed", String(this.isLogarithmic()));
      this.draw();
    };
    const scale = button("Log scale", turn, { "aria-pressed": String(this.isLogarithmic()) });
    const smoothing = h("input", {
      type: "range",
      min: 0,
      max: MOST_SMOOTHING,
      step: 0.01,
      value: chosenSmoothing.get(title) ?? 0,
      input: () => {
        chosenSmoothing.set(title, Number(smoothing.value));
        this.draw();
      },
    });
    const csv = (): void => save(title, "csv", new Blob([writeCsv(this.options.x, this.lines)], { type: "text/csv" }));
    const png = (): void =>
      this.plot?.ctx.canvas.toBlob((picture) => {
        if (picture) save(title, "png", picture);
      });
    return h(
      "div",
      { class: "tools", role: "group", "aria-label": `Tools of ${title}` },
      scale,
      h("label", {}, "Smoothing ", smoothing),
      button("CSV", csv),
      button("PNG", png),
      this.note,
    );
  }

  private isLogarithmic(): boolean {
    return chosenScales.get(this.options.title) ?? this.options.logarithmic === true;
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
    const weight = chosenSmoothing.get(this.options.title) ?? 0;
    const { at, columns } = joinLines(
      weight ? this.lines.map((line) => ({ ...line, values: smoothValues(line.values, weight) })) : this.lines,
    );
    const spread = this.lines.map((line) => (line.low && line.high ? 3 : 1));
    const series: uPlot.Series[] = [
      { label: this.options.x, ...(this.options.time ? {} : { value: (_, value) => formatNumber(value) }) },
    ];
    const bands: uPlot.Band[] = [];
    const styles = styleLines(this.lines, readTheme());
    this.lines.forEach((line, index) => {
      const { colour: stroke, dash } = styles[index] ?? { colour: "#888", dash: [] };
      const few = line.at.length <= 60;
      const banded = spread[index] === 3;
      const first = series.length;
      series.push({
        label: line.label,
        stroke,
        width: 2,
        dash,
        points: { show: few, size: 5 },
        value: (plot, value, _, at) => {
          const [low, high] =
            banded && at !== null ? [first + 1, first + 2].map((each) => formatNumber(plot.data[each]?.[at])) : [];
          return (
            formatNumber(value) + (banded && at !== null && typeof value === "number" ? ` (${low} to ${high})` : "")
          );
        },
      });
      if (banded) {
        for (const which of ["lowest", "highest"])
          series.push({
            label: `${line.label}, ${which}`,
            class: "edge",
            stroke: "transparent",
            points: { show: false },
          });
        bands.push({ series: [first + 2, first + 1], fill: withAlpha(stroke) });
      }
    });
    this.plot?.destroy();
    this.canvas.replaceChildren();
    const shown = this.lines
      .map((line) => `${line.label}: ${line.at.length} values, last ${formatNumber(line.values.at(-1))}`)
      .join("; ");
    this.canvas.setAttribute("aria-label", `${this.options.title}. ${shown || "No values yet."}`);
    if (!at.length) {
      this.canvas.append(quiet("No values yet."));
      this.plot = null;
      return;
    }
    const axis: uPlot.Axis = {
      stroke: colour("--quiet"),
      grid: { stroke: colour("--line"), width: 1 },
      ticks: { stroke: colour("--line") },
      font: "12px system-ui, sans-serif",
    };
    const positive = columns.every((column) =>
      column.every((value) => value === null || value === undefined || value > 0),
    );
    const logarithmic = this.isLogarithmic() && positive;
    this.note.textContent =
      this.isLogarithmic() && !positive ? "Values that are 0 or less have no place on a log scale." : "";
    const limit = this.options.threshold;
    this.plot = new uPlot(
      {
        ...this.size(),
        series,
        bands,
        legend: {
          show: this.lines.length <= MOST_NAMED,
          live: true,
          markers: { width: 2, dash: (plot, number) => nameDash(plot.series[number]?.dash) },
        },
        focus: { alpha: 0.3 },
        scales: {
          x: {
            time: this.options.time === true,
            range: (_, first, last) => (at.length === 1 ? spreadOne(at[0] ?? 0) : [first, last]),
          },
          y: logarithmic
            ? { distr: 3, range: (_, low, high) => coverDecades([low, high, this.options.threshold]) }
            : { range: (_, low, high) => this.range(low, high) },
        },
        axes: [
          { ...axis, label: this.options.x, labelSize: 20, labelFont: "12px system-ui, sans-serif" },
          {
            ...axis,
            grid: { ...axis.grid, ...(logarithmic ? { filter: (_, ticks) => keepDecades(ticks) } : {}) },
            ticks: { ...axis.ticks, ...(logarithmic ? { filter: (_, ticks) => keepDecades(ticks) } : {}) },
            size: 72,
            values: (_, ticks) => ticks.map((tick) => (tick === null ? "" : formatNumber(tick))),
          },
        ],
        cursor: {
          drag: { x: true, y: false },
          focus: { prox: this.lines.length > 1 ? 24 : -1 },
          ...(this.options.sync === undefined ? {} : { sync: { key: this.options.sync } }),
        },
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
        ctx.fillText(
          `threshold ${formatNumber(limit)}`,
          bbox.left + 24 * devicePixelRatio,
          y - bbox.top > 20 * devicePixelRatio ? y - 4 * devicePixelRatio : y + 14 * devicePixelRatio,
        );
      }
    }
    const firings = (this.options.firings ?? [])
      .map((firing) => ({ ...firing, x: plot.valToPos(firing.step, "x", true) }))
      .filter(({ x }) => x >= bbox.left - 1 && x <= bbox.left + bbox.width + 1);
    const offsets = stackLabels(
      firings.map(({ x, rule }) => ({ x, length: ctx.measureText(rule).width })),
      // A label's height, on each side of its line.
      34 * devicePixelRatio,
      12 * devicePixelRatio,
    );
    for (const [index, firing] of firings.entries()) {
      const { x } = firing;
      line(ctx, x, bbox.top, x, bbox.top + bbox.height);
      ctx.save();
      // On the side where there is room.
      ctx.translate(
        x > bbox.left + bbox.width / 2 ? x - 12 * devicePixelRatio : x + 5 * devicePixelRatio,
        bbox.top + 4 * devicePixelRatio + (offsets[index] ?? 0),
      );
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
      tableHead([this.options.x, ...this.lines.map((line) => name(line.label))]),
      h(
        "tbody",
        {},
        at.slice(0, 2000).map((step) =>
          row(
            step,
            known.map((values) =>
              values.has(step) ? String(values.get(step) ?? this.options.absent ?? "not finite") : "",
            ),
          ),
        ),
      ),
    );
  }
}

function save(title: string, ending: string, content: Blob): void {
  const address = URL.createObjectURL(content);
  h("a", { href: address, download: `${title.replace(/[^\w.-]+/g, "_")}.${ending}` }).click();
  URL.revokeObjectURL(address);
}

function nameDash(dash: number[] = []): string {
  return !dash.length ? "solid" : (dash[0] ?? 0) > 4 ? "dashed" : "dotted";
}

function withAlpha(stroke: string): string {
  return stroke.startsWith("#") ? `${stroke}33` : stroke.replace(")", " / 20%)");
}

function line(ctx: CanvasRenderingContext2D, fromX: number, fromY: number, toX: number, toY: number): void {
  ctx.beginPath();
  ctx.moveTo(fromX, fromY);
  ctx.lineTo(toX, toY);
  ctx.stroke();
}
