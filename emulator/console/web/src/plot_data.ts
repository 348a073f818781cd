// What is computed of a plot's lines: smoothed values, a table as CSV, and places of labels.

export interface PlottedLine {
  label: string;
  /** What the line is of: lines of one subject differ in their modes. The label, if it is left out. */
  subject?: string;
  /** TRAIN, EVAL, PREDICT, or GLOBAL for none; left out where lines have no modes. */
  mode?: string;
  at: number[];
  values: (number | null)[];
  low?: (number | null)[];
  high?: (number | null)[];
}

/**
 * Smooth values by an exponential moving average; what is not a number stays so.
 *
 * The weight is from 0 (nothing changes) to below 1. The first values are not drawn towards 0: each average is
 * divided by the sum of its weights.
 */
export function smoothValues(values: (number | null)[], weight: number): (number | null)[] {
  let [sum, count] = [0, 0];
  return values.map((value) => {
    if (value === null || !Number.isFinite(value)) return value;
    sum = sum * weight + value * (1 - weight);
    count = count * weight + (1 - weight);
    return sum / count;
  });
}

/** The values as CSV: a column for each line, empty where a line has none. */
export function writeCsv(x: string, lines: PlottedLine[]): string {
  const at = [...new Set(lines.flatMap((line) => line.at))].sort((a, b) => a - b);
  const known = lines.map((line) => new Map(line.at.map((step, index) => [step, line.values[index]])));
  const rows = at.map((step) => [String(step), ...known.map((values) => String(values.get(step) ?? ""))]);
  return [[x, ...lines.map((line) => line.label)], ...rows].map((row) => row.map(quote).join(",") + "\r\n").join("");
}

function quote(text: string): string {
  // A spreadsheet takes what begins so for a formula; numbers may begin with a minus.
  const safe = /^[=+@\t\r]|^-(?![\d.])/.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

/** How far down each label beside an upright line begins, so that those of lines close together do not overlap. */
export function stackLabels(labels: { x: number; length: number }[], near: number, gap: number): number[] {
  const placed: { x: number; from: number; to: number }[] = [];
  return labels.map(({ x, length }) => {
    let from = 0;
    for (const other of placed.filter((each) => Math.abs(each.x - x) < near).sort((a, b) => a.from - b.from))
      if (from < other.to && other.from < from + length) from = other.to + gap;
    placed.push({ x, from, to: from + length });
    return from;
  });
}

/** The ends of an axis of one step: it is in the middle, and not at the edge of a hundred steps or of three years. */
export function spreadOne(at: number): [number, number] {
  return [at - 1, at + 1];
}

/** Of the ticks of a logarithmic axis the powers of ten: lines for all between them are a grey area. */
export function keepDecades(ticks: (number | null)[]): (number | null)[] {
  return ticks.map((tick) => (tick !== null && Math.abs(Math.log10(tick) % 1) < 1e-9 ? tick : null));
}

/** The ends of a logarithmic axis: whole powers of ten that have all numbers between them. */
export function coverDecades(numbers: (number | null | undefined)[]): [number, number] {
  const exponents = numbers.flatMap((each) => (typeof each === "number" && each > 0 ? [Math.log10(each)] : []));
  if (!exponents.length) return [0.1, 10];
  const [low, high] = [Math.floor(Math.min(...exponents)), Math.ceil(Math.max(...exponents))];
  return [10 ** low, 10 ** (high > low ? high : low + 1)];
}
