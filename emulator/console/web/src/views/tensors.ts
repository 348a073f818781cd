// Tensors: lines over steps, histograms, heat maps, values, classes taken for each other.

import { ApiError, ask, type HeatMap, type Histogram, type Job, type Line, type Run, type Values } from "../api";
import { choice, debounce, fill, h, name } from "../dom";
import { formatNumber } from "../format";
import { drawGrid, HeatMapPlot } from "../heat_map";
import { labelLines } from "../lines";
import { LinePlot } from "../plots";
import type { Part } from "./job";
import { load } from "./view";

type Kind = "lines" | "histogram" | "heat map" | "values" | "confusion" | "importance";
const KINDS: Kind[] = ["lines", "histogram", "heat map", "values", "confusion"];
// What the hook for XGBoost saves: feature_importance/KIND/FEATURE, a number a round.
const IMPORTANCE = /^feature_importance\/([^/]+)\//;
// These show what the run has, whichever tensors are chosen.
const OF_THE_RUN: Kind[] = ["heat map", "confusion", "importance"];
const REDUCTIONS = ["", "mean", "abs_mean", "min", "max", "std", "l2", "abs_max", "variance", "sum", "l1"];
const MOST_LINES = 8;
// What comes first may be few of many steps, no more than a first look at a run knows; then more, at last as many as fit a wide screen.
const STEPS = [24, 150, 1000];
// Of a heat map, likewise.
const COLUMNS = [24, 120];
// Rows of a heat map that are read a second time, more closely: of more the first look takes long enough.
const MOST_READ_CLOSELY = 2000;
// Of a collection, all at once would make the page slow.
const MOST_LISTED = 500;

export function showTensors(root: Element, path: string): Part {
  let kind: Kind = "lines";
  let [reduction, mode, worker, scale] = ["", "", "", "magnitude"];
  let chosen: string[] = [];
  let collection = "gradients";
  let step = "";
  let importance = "";
  let [labels, predictions] = ["", ""];
  let run: Run | null = null;
  let firings: { step: number; rule: string }[] = [];
  let plot: LinePlot | null = null;
  let map: HeatMapPlot | null = null;
  let heat: HeatMap | null = null;
  let rowFilter = "";
  let filter = "";
  let generation = 0;
  const tree = h("div", { class: "tree" });
  const controls = h("div", { class: "filters" });
  const content = h("div", { "aria-live": "off" });
  const said = h("p", { class: "quiet", role: "status" }, "Loading …");
  const find = h("input", { type: "search", placeholder: "tensor's name", "aria-label": "Search tensors", "data-search": true, input: debounce(() => { filter = find.value.toLowerCase(); showTree(); }, 100) });

  const rowInput = h("input", { type: "search", placeholder: "rows whose name has …", "aria-label": "Filter rows", input: debounce(() => { rowFilter = rowInput.value.toLowerCase(); showHeatMap(); }, 100) });

  async function refreshRun(): Promise<void> {
    await load(said, async () => {
      const before = run;
      run = await ask<Run>(`${path}/tensors`);
      const steps = run.steps.count ? `${run.complete ? "" : "about "}${run.steps.count} steps, ${run.steps.first ?? 0} to ${run.steps.last ?? 0}` : "no steps yet";
      fill(said, `${run.tensors.length} tensors, ${steps}${run.ended ? "" : "; more are coming"}.`, run.complete ? null : " Of so many steps some were looked into.");
      if (run.damaged.length) said.append(h("span", { class: "problem" }, ` Damaged: ${run.damaged.join(" ")}`));
      if (JSON.stringify(before?.tensors) !== JSON.stringify(run.tensors) || JSON.stringify(before?.modes) !== JSON.stringify(run.modes)) {
        if (!chosen.length) choose();
        showTree();
        showControls();
      }
    });
    await draw();
  }
  function choose(): void {
    const losses = run?.collections.find((each) => each.name === "losses" && each.tensors.length) ?? run?.collections.find((each) => each.tensors.length);
    chosen = losses?.tensors.slice(0, 1) ?? [];
    const names = run?.tensors.map((each) => each.name) ?? [];
    const find = (which: string): string => run?.collections.find((each) => each.name === which)?.tensors[0] ?? names.find((each) => each.toLowerCase().includes(which.slice(0, -1))) ?? "";
    [labels, predictions] = [find("labels"), find("predictions")];
    if (!run?.collections.some((each) => each.name === collection && each.tensors.length)) collection = run?.collections.find((each) => each.tensors.length > 1)?.name ?? "";
  }
  function showTree(): void {
    const opened = new Set([...tree.querySelectorAll("details[open]")].map((each) => each.getAttribute("data-collection")));
    const groups = (run?.collections ?? []).filter((each) => each.tensors.length);
    const grouped = new Set(groups.flatMap((each) => each.tensors));
    const others = (run?.tensors ?? []).map((each) => each.name).filter((each) => !grouped.has(each));
    const all = [...groups.map((each) => ({ name: each.name, tensors: each.tensors })), ...(others.length ? [{ name: "in no collection", tensors: others }] : [])];
    fill(tree, all.filter((each) => each.name !== "all" || all.length === 1).map((group) => {
      const names = group.tensors.filter((each) => each.toLowerCase().includes(filter));
      if (!names.length) return null;
      return h("details", { open: opened.has(group.name) || filter !== "" || names.some((each) => chosen.includes(each)), "data-collection": group.name },
        h("summary", {}, name(group.name), h("span", { class: "quiet" }, ` ${names.length}`)),
        h("ul", {}, names.slice(0, MOST_LISTED).map((each) => {
          const box = h("input", { type: "checkbox", checked: chosen.includes(each), value: each, change: () => {
            chosen = box.checked ? [...chosen, each].slice(-MOST_LINES) : chosen.filter((other) => other !== each);
            if (box.checked && kind !== "lines") chosen = [each];
            for (const other of tree.querySelectorAll<HTMLInputElement>("input")) other.checked = chosen.includes(other.value);
            void draw();
          } });
          return h("li", {}, h("label", {}, box, name(each)));
        }), names.length > MOST_LISTED ? h("li", { class: "quiet" }, `${names.length - MOST_LISTED} more: search for them above.`) : null));
    }));
  }
  function showControls(): void {
    const collections = (run?.collections ?? []).filter((each) => each.tensors.length).map((each): [string, string] => [each.name, each.name]);
    const names = (run?.tensors ?? []).map((each): [string, string] => [each.name, each.name]);
    const importances = [...new Set(names.flatMap(([each]) => IMPORTANCE.exec(each)?.[1] ?? []))];
    if (!importances.includes(importance)) importance = importances[0] ?? "";
    const kinds = importances.length ? [...KINDS, "importance" as const] : KINDS;
    const stepInput = h("input", { type: "number", min: "0", placeholder: "last", value: step, "aria-label": "Step", change: () => { step = stepInput.value; void draw(); } });
    fill(controls,
      h("div", { class: "tabs small", role: "group", "aria-label": "Kind of picture" }, kinds.map((each) => h("button", { type: "button", "aria-pressed": String(each === kind), "data-kind": each, click: () => { kind = each; showControls(); fill(content, h("p", { class: "quiet" }, "Loading …")); void draw(); controls.querySelector<HTMLElement>(`[data-kind="${each}"]`)?.focus(); } }, each))),
      kind === "lines" || kind === "heat map" ? choice("Reduction", REDUCTIONS.map((each): [string, string] => [each, each || (kind === "lines" ? "value (mean)" : "abs_mean")]), reduction, (value) => { reduction = value; void draw(); }) : null,
      kind === "histogram" ? choice("Scale", [["magnitude", "magnitude (powers of ten)"], ["value", "value"]], scale, (value) => { scale = value; void draw(); }) : null,
      kind === "heat map" ? [choice("Collection", collections, collection, (value) => { collection = value; void draw(); }), rowInput] : null,
      kind === "importance" ? choice("By", importances.map((each): [string, string] => [each, each]), importance, (value) => { importance = value; void draw(); }) : null,
      kind === "confusion" && labels && predictions ? [choice("Labels", names, labels, (value) => { labels = value; void draw(); }), choice("Predictions", names, predictions, (value) => { predictions = value; void draw(); })] : null,
      kind === "values" || kind === "confusion" ? h("label", {}, "Step ", stepInput) : kind !== "importance" && (run?.modes.length ?? 0) > 1 ? choice("Mode", [["", "all"], ...(run?.modes ?? []).map((each): [string, string] => [each, each])], mode, (value) => { mode = value; void draw(); }) : null,
      kind === "lines" && (run?.workers.length ?? 0) > 1 ? choice("Worker", [["", "all"], ...(run?.workers ?? []).map((each): [string, string] => [each, each])], worker, (value) => { worker = value; void draw(); }) : null);
  }

  async function draw(): Promise<void> {
    const mine = ++generation;
    if (kind !== "lines" && kind !== "importance" && plot) { plot.close(); plot = null; }
    if (run === null || (!chosen.length && !OF_THE_RUN.includes(kind))) {
      if (run !== null) fill(content, h("p", { class: "quiet" }, "Choose a tensor."));
      return;
    }
    await load(content, async () => {
      if (kind === "lines") await drawLines(mine);
      else if (kind === "importance") await drawImportance(mine);
      else if (kind === "heat map") await drawHeatMap(mine);
      else {
        const element = kind === "histogram" ? await drawHistogram() : kind === "values" ? await drawValues() : await drawConfusion();
        if (mine === generation) fill(content, element);
      }
    });
  }
  async function drawLines(mine: number): Promise<void> {
    for (const most of STEPS) {
      const found = await ask<{ series: Line[] }>(`${path}/tensors/series`, { tensor: chosen, reduction, mode, worker, most, points: 800 });
      if (mine !== generation) return;
      if (!plot || !plot.element.isConnected) {
        plot?.close();
        plot = new LinePlot({ title: "Tensors over steps", x: "global step", firings, height: 320 });
        fill(content, plot.element, h("p", { class: "quiet", "data-note": true }));
      }
      const labels = labelLines(found.series, (line) => line.tensor);
      const workers = new Set(found.series.map((line) => line.worker));
      plot.show(found.series.map((line, index) => {
        const banded = line.read > line.steps.length;
        const subject = workers.size > 1 ? `${line.tensor}, ${line.worker}` : line.tensor;
        return { label: labels[index] ?? line.tensor, subject, mode: line.mode, at: line.steps, values: line.mean, ...(banded ? { low: line.min, high: line.max } : {}) };
      }));
      const notes = found.series.flatMap((line, index) => [
        line.read < line.known ? `${labels[index] ?? ""}: ${line.read} of ${line.known} steps are shown.` : "",
        line.unread ? `${labels[index] ?? ""}: ${line.unread} values are too large to be read, or damaged; "values" says which.` : "",
        line.notFinite.count ? `${labels[index] ?? ""}: ${line.notFinite.count} values are no finite numbers, the first at step ${line.notFinite.first[0]?.[0] ?? ""}.` : "",
      ]).filter(Boolean);
      const note = content.querySelector("[data-note]");
      if (note) note.textContent = notes.join(" ");
      if (found.series.every((line) => line.read >= line.known)) return;
    }
  }
  function placeFirings(steps: number[]): { column: number; text: string }[] {
    return firings.filter((each) => steps.length && each.step >= (steps[0] ?? 0) && each.step <= (steps.at(-1) ?? 0))
      .map((each) => ({ column: Math.max(0, steps.findIndex((at) => at >= each.step)), text: each.rule }));
  }
  async function drawHistogram(): Promise<HTMLElement> {
    const tensor = chosen.at(-1) ?? "";
    const found = await ask<Histogram>(`${path}/tensors/histogram`, { tensor, scale, mode });
    // Highest values above; a column a step.
    const rows = found.edges.slice(0, -1).map((edge, index) => ({ edge, values: found.shares.map((share) => share[index] || null) })).reverse();
    const label = (edge: number): string => (scale === "magnitude" ? `10^${edge.toFixed(1)}` : formatNumber(edge));
    const odd = found.counts.reduce((sum, each) => sum + each.zero, 0);
    const strange = found.counts.reduce((sum, each) => sum + each.notFinite, 0);
    return h("div", {}, drawGrid({ title: `${tensor}: share of values by ${scale}`, values: rows.map((row) => row.values), rows: rows.map((row) => label(row.edge)), columns: nameSteps(found.steps, found.modes), columnLabel: "step", marks: placeFirings(found.steps) }),
      odd && scale === "magnitude" ? h("p", { class: "quiet" }, `${odd} values are 0 and have no magnitude.`) : null, strange ? h("p", { class: "quiet" }, `${strange} values are NaN or infinite.`) : null);
  }
  async function drawHeatMap(mine: number): Promise<void> {
    for (const columns of COLUMNS) {
      const found = await ask<HeatMap>(`${path}/tensors/heat-map`, { collection, reduction, mode, columns });
      if (mine !== generation) return;
      heat = found;
      showHeatMap();
      if (found.steps.length < columns || found.tensors.length > MOST_READ_CLOSELY) return;
    }
  }
  function showHeatMap(): void {
    if (kind !== "heat map" || heat === null) return;
    const { tensors, values, known, steps, modes } = heat;
    const shown = tensors.flatMap((tensor, index) => (tensor.toLowerCase().includes(rowFilter) ? [index] : []));
    const rows = shown.map((index) => values[index] ?? []);
    const numbers = rows.flat().filter((value): value is number => typeof value === "number");
    const logarithmic = numbers.length > 0 && numbers.every((value) => value >= 0) && numbers.some((value) => value > 0);
    if (!map?.element.isConnected) fill(content, (map = new HeatMapPlot()).element);
    const count = shown.length < known ? `, ${shown.length} of ${known} tensors` : "";
    map.show({ title: `${collection}: ${reduction || "abs_mean"}${count}`, values: rows, rows: shown.map((index) => tensors[index] ?? ""), columns: nameSteps(steps, modes), columnLabel: "step", logarithmic, marks: placeFirings(steps) });
  }
  /** Steps, each with its mode where there are several. */
  function nameSteps(steps: number[], modes: string[]): string[] {
    const several = new Set(modes).size > 1;
    return steps.map((each, index) => (several && modes[index] !== "GLOBAL" ? `${each} (${modes[index] ?? ""})` : String(each)));
  }
  async function drawValues(): Promise<HTMLElement> {
    const found = await ask<Values>(`${path}/tensors/values`, { tensor: chosen.at(-1) ?? "", step });
    const facts = [["step", found.step], ["type", found.dtype ?? "–"], ["shape", found.shape ? (found.shape.join(" × ") || "one number") : "–"],
      ...(["min", "max", "mean", "std"] as const).map((each): [string, string] => [each, formatNumber(found[each])]), ["not finite", found.notFinite ?? "–"],
      ...Object.entries(found.reductions).map(([key, value]): [string, string] => [`saved ${key}`, formatNumber(value)])];
    const parts: HTMLElement[] = [h("h2", {}, name(found.tensor)), h("dl", { class: "pairs" }, facts.flatMap(([key, value]) => [h("dt", {}, key ?? ""), h("dd", {}, value ?? "")]))];
    if (found.tooLarge) parts.push(h("p", { class: "problem" }, found.tooLarge));
    if (found.texts) parts.push(h("ul", {}, found.texts.map((text) => h("li", {}, name(text)))));
    const plane = found.plane?.map((row) => row.map((value) => (typeof value === "boolean" ? Number(value) : value))) ?? [];
    if (plane.length > 1 && (plane[0]?.length ?? 0) > 1) {
      parts.push(drawGrid({ title: `Values${found.index?.length ? ` at ${found.index.join(", ")}` : ""}`, values: plane, rows: plane.map((_, index) => `row ${index}`), columns: (plane[0] ?? []).map((_, index) => String(index)), columnLabel: "column" }));
    }
    if (plane.length) {
      parts.push(h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Values" }, h("table", { class: "numbers" }, h("tbody", {}, plane.map((row) => h("tr", {}, row.map((value) => h("td", {}, formatNumber(value)))))))));
    }
    return h("div", {}, parts);
  }
  async function drawImportance(mine: number): Promise<void> {
    const prefix = `feature_importance/${importance}/`;
    const found = await ask<HeatMap>(`${path}/tensors/heat-map`, { regex: `^${prefix}`, reduction: "mean" });
    if (mine !== generation) return;
    const last = (row: (number | string | null)[]): number => Number(row.findLast((value) => value !== null) ?? 0);
    const features = found.tensors.map((tensor, index) => ({ feature: tensor.slice(prefix.length), values: found.values[index] ?? [] })).sort((a, b) => last(b.values) - last(a.values));
    plot?.close();
    plot = new LinePlot({ title: `Importance of features by ${importance}, over rounds`, x: "global step", firings, height: 320 });
    fill(content, plot.element, drawGrid({ title: `Features × rounds by ${importance}`, values: features.map((each) => each.values), rows: features.map((each) => each.feature), columns: found.steps.map(String), columnLabel: "step", marks: placeFirings(found.steps) }),
      h("p", { class: "quiet" }, "The most important above, by the last round; where no tree uses a feature, its cells are empty.", features.length > MOST_LINES ? ` The lines are of the first ${MOST_LINES}.` : "", found.known > features.length ? ` ${features.length} of ${found.known} features are shown.` : ""));
    plot.show(features.slice(0, MOST_LINES).map((each) => ({ label: each.feature, at: found.steps, values: each.values.map((value) => (typeof value === "number" ? value : null)) })));
  }
  async function drawConfusion(): Promise<HTMLElement> {
    if (!labels || !predictions) throw new ApiError("Save the collections labels and predictions to see which classes are taken for which.", 404);
    const found = await ask<{ counts: number[][]; step: number }>(`${path}/tensors/confusion`, { labels, predictions, step });
    const classes = found.counts.map((_, index) => String(index));
    return h("div", {}, drawGrid({ title: `Labels × predictions at step ${found.step}`, values: found.counts, rows: classes.map((each) => `label ${each}`), columns: classes, columnLabel: "predicted as" }),
      h("table", { class: "numbers" }, h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "label"), classes.map((each) => h("th", { scope: "col" }, each)))),
        h("tbody", {}, found.counts.map((row, index) => h("tr", {}, h("th", { scope: "row" }, index), row.map((count) => h("td", {}, count)))))));
  }

  fill(root, said, h("div", { class: "split" }, h("div", { class: "side" }, find, tree), h("div", { class: "main" }, controls, content)));
  let timer = 0;
  const soon = (): void => {
    if (!timer) timer = window.setTimeout(() => { timer = 0; void refreshRun(); }, run === null ? 0 : 800);
  };
  soon();
  return {
    update: (job: Job) => {
      firings = job.rules.filter((rule) => rule.status === "IssuesFound" && typeof rule.report?.Finding?.Step === "number").map((rule) => ({ step: rule.report?.Finding?.Step ?? 0, rule: rule.name }));
      if (plot) { plot.close(); plot = null; fill(content); }
      soon();
    },
    progress: soon,
    close: () => { clearTimeout(timer); plot?.close(); },
  };
}
