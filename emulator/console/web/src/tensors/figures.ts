// Computations of the pictures of tensors: answers of the API as lines, rows and sentences.

import type { HeatMap, Histogram, Line, Values } from "../api";
import { formatNumber } from "../format.ts";
import { labelLines } from "../lines.ts";
import type { PlottedLine } from "../plot_data";

export interface Firing {
  step: number;
  rule: string;
}

/** The columns at which rules fired; a rule that fired outside the steps has none. */
export function placeFirings(firings: Firing[], steps: number[]): { column: number; text: string }[] {
  const [first, last] = [steps[0], steps.at(-1)];
  if (first === undefined || last === undefined) return [];
  return firings
    .filter((each) => each.step >= first && each.step <= last)
    .map((each) => ({ column: steps.findIndex((step) => step >= each.step), text: each.rule }));
}

/** Names of columns: the steps, each with its mode where there are several modes. */
export function nameSteps(steps: number[], modes: string[]): string[] {
  const several = new Set(modes).size > 1;
  return steps.map((each, index) =>
    several && modes[index] !== "GLOBAL" ? `${each} (${modes[index] ?? ""})` : String(each),
  );
}

/** Lines to plot: with a band from lowest to highest where a point stands for several steps. */
export function arrangeLines(series: Line[]): PlottedLine[] {
  const labels = labelLines(series, (line) => line.tensor);
  const severalWorkers = new Set(series.map((line) => line.worker)).size > 1;
  return series.map((line, index) => ({
    label: labels[index] ?? line.tensor,
    subject: severalWorkers ? `${line.tensor}, ${line.worker}` : line.tensor,
    mode: line.mode,
    at: line.steps,
    values: line.mean,
    ...(line.read > line.steps.length ? { low: line.min, high: line.max } : {}),
  }));
}

export const AXES: [value: string, text: string][] = [
  ["", "global step"],
  ["relative", "seconds since the first"],
  ["time", "time"],
];

/** Steps as seconds: since 1970, or since the first of all lines. A step whose time is not known has no place. */
export function placeInTime(lines: PlottedLine[], times: (number | null)[][], axis: string): PlottedLine[] {
  const known = times.flat().filter((each) => each !== null);
  const first = axis === "time" ? 0 : known.reduce((a, b) => Math.min(a, b), Infinity);
  return lines.map((line, index) => {
    const kept = (times[index] ?? []).flatMap((time, at) => (time === null ? [] : [{ time, at }]));
    const pick = (values?: (number | null)[]): (number | null)[] => kept.map(({ at }) => values?.[at] ?? null);
    return {
      ...line,
      at: kept.map(({ time }) => (time - first) / 1000),
      values: pick(line.values),
      ...(line.low && line.high ? { low: pick(line.low), high: pick(line.high) } : {}),
    };
  });
}

/** What the lines do not show, in sentences. */
export function describeGaps(series: Line[]): string {
  const labels = labelLines(series, (line) => line.tensor);
  const sentences = series.flatMap((line, index) => [
    line.read < line.known ? `${labels[index] ?? ""}: ${line.read} of ${line.known} steps are shown.` : "",
    line.unread
      ? `${labels[index] ?? ""}: ${line.unread} values are too large to be read, or damaged; "values" says which.`
      : "",
    line.notFinite.count
      ? `${labels[index] ?? ""}: ${line.notFinite.count} values are no finite numbers, the first at step ${line.notFinite.first[0]?.[0] ?? ""}.`
      : "",
  ]);
  return sentences.filter(Boolean).join(" ");
}

/** Rows of a histogram, the highest values first; an empty bin is null. */
export function arrangeBins(found: Histogram, scale: string): { label: string; values: (number | null)[] }[] {
  return found.edges
    .slice(0, -1)
    .map((edge, index) => ({
      label: scale === "magnitude" ? `10^${edge.toFixed(1)}` : formatNumber(edge),
      values: found.shares.map((share) => share[index] || null),
    }))
    .reverse();
}

/** Rows of a heat map whose names have a text, in upper or lower case. */
export function filterRows(found: HeatMap, text: string): { rows: string[]; values: (number | string | null)[][] } {
  const wanted = text.toLowerCase();
  const shown = found.tensors.flatMap((tensor, index) => (tensor.toLowerCase().includes(wanted) ? [index] : []));
  return {
    rows: shown.map((index) => found.tensors[index] ?? ""),
    values: shown.map((index) => found.values[index] ?? []),
  };
}

/** Whether all numbers have a magnitude or are 0, and not all are 0. */
export function suitsLogarithm(values: (number | string | null)[][]): boolean {
  const numbers = values.flat().filter((value) => typeof value === "number");
  return numbers.every((value) => value >= 0) && numbers.some((value) => value > 0);
}

/** Features with their importance over rounds, the most important of the last round first. */
export function arrangeFeatures(
  found: HeatMap,
  prefix: string,
): { feature: string; values: (number | string | null)[] }[] {
  const last = (row: (number | string | null)[]): number => Number(row.findLast((value) => value !== null) ?? 0);
  return found.tensors
    .map((tensor, index) => ({ feature: tensor.slice(prefix.length), values: found.values[index] ?? [] }))
    .sort((a, b) => last(b.values) - last(a.values));
}

/** The statistics of a tensor at a step, by name. */
export function listFacts(found: Values): [name: string, value: string][] {
  return [
    ["step", String(found.step)],
    ["type", found.dtype ?? "–"],
    ["shape", found.shape ? found.shape.join(" × ") || "one number" : "–"],
    ...(["min", "max", "mean", "std"] as const).map((each): [string, string] => [each, formatNumber(found[each])]),
    ["not finite", String(found.notFinite ?? "–")],
    ...Object.entries(found.reductions).map(([key, value]): [string, string] => [`saved ${key}`, formatNumber(value)]),
  ];
}
