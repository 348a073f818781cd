// Axes of a picture in parallel coordinates: where each value of a hyperparameter or an objective is.

export interface Axis {
  name: string;
  /** From 0 at the bottom to 1 at the top; null where there is no value. */
  positions: (number | null)[];
  ticks: { at: number; text: string }[];
  logarithmic: boolean;
}

// A range over more than two powers of ten is easier to read as such.
const LOGARITHMIC_FROM = 100;

/** Make the axis of some values: numbers by size, anything else by name. */
export function buildAxis(
  name: string,
  values: (string | number | null | undefined)[],
  write: (n: number) => string,
): Axis {
  const known = values.filter((value) => value !== null && value !== undefined);
  const numbers = known.map(Number);
  if (!known.length || known.some((value) => value === "") || numbers.some((value) => !Number.isFinite(value)))
    return arrangeNames(name, values);
  const [low, high] = [Math.min(...numbers), Math.max(...numbers)];
  const logarithmic = low > 0 && high / low > LOGARITHMIC_FROM;
  const scale = (value: number): number =>
    high === low ? 0.5 : logarithmic ? Math.log(value / low) / Math.log(high / low) : (value - low) / (high - low);
  const between = logarithmic ? Math.sqrt(low * high) : (low + high) / 2;
  return {
    name,
    positions: values.map((value) => (value === null || value === undefined ? null : scale(Number(value)))),
    ticks: [...new Set([low, between, high])].map((value) => ({ at: scale(value), text: write(value) })),
    logarithmic,
  };
}

function arrangeNames(name: string, values: (string | number | null | undefined)[]): Axis {
  const names = [...new Set(values.filter((value) => value !== null && value !== undefined).map(String))].sort();
  const place = (value: string): number => (names.length < 2 ? 0.5 : names.indexOf(value) / (names.length - 1));
  return {
    name,
    positions: values.map((value) => (value === null || value === undefined ? null : place(String(value)))),
    ticks: names.map((each) => ({ at: place(each), text: each })),
    logarithmic: false,
  };
}

/** From 0 for the worst value to 1 for the best; null where there is none. */
export function rankValues(values: (number | null)[], direction: string): (number | null)[] {
  const known = values.filter((value) => value !== null);
  const [low, high] = [Math.min(...known), Math.max(...known)];
  return values.map((value) => {
    if (value === null) return null;
    const share = high === low ? 1 : (value - low) / (high - low);
    return direction === "Minimize" ? (high === low ? 1 : 1 - share) : share;
  });
}
