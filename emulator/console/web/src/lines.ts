// What tells lines apart: colours, dashes and names. A mode looks the same in every plot.

// Hues that people with colour blindness can tell apart, each with a contrast of 3:1 or more to its page.
export const COLOURS = {
  light: ["#0072b2", "#00805f", "#a8437f", "#c35500", "#8a6d00", "#3f83a8", "#7a5195", "#5f6b75"],
  dark: ["#4aa8e0", "#2bbd92", "#e08fc0", "#f08a4b", "#d9b53f", "#8fcdf0", "#b493d6", "#a5b0ba"],
};
export const BACKGROUNDS = { light: "#ffffff", dark: "#14171b" };
const MODES = ["TRAIN", "EVAL", "PREDICT"];
const MODE_DASHES: Record<string, number[]> = { EVAL: [8, 4], PREDICT: [2, 4] };
const DASHES = [[], [8, 4], [2, 3], [10, 3, 2, 3], [5, 2], [1, 2], [12, 4], [6, 2, 2, 2]];

export interface Told {
  label: string;
  subject?: string;
  mode?: string;
}
export interface LineStyle {
  colour: string;
  dash: number[];
}

/** Styles of lines: dashes tell modes; colours tell subjects, or modes where all lines are of one subject. */
export function styleLines(lines: Told[], theme: "light" | "dark"): LineStyle[] {
  const subjects = [...new Set(lines.map((line) => line.subject ?? line.label))];
  return lines.map((line) => {
    const subject = subjects.indexOf(line.subject ?? line.label);
    const number = line.mode !== undefined && subjects.length === 1 ? Math.max(0, MODES.indexOf(line.mode)) : subject;
    const dash = line.mode === undefined ? DASHES[subject % DASHES.length] : MODE_DASHES[line.mode];
    return { colour: pickHue(number, theme), dash: dash ?? [] };
  });
}

function pickHue(number: number, theme: "light" | "dark"): string {
  // The eight that are easily told apart come first; more are spread around the circle.
  return COLOURS[theme][number] ?? `hsl(${Math.round(number * 137.5) % 360} 70% ${theme === "light" ? 32 : 68}%)`;
}

export interface Saved {
  mode: string;
  worker: string;
}

/** Name each line: with its mode and its worker where the lines are of several. */
export function labelLines<T extends Saved>(lines: T[], subject: (line: T) => string): string[] {
  const modes = new Set(lines.map((line) => line.mode));
  const workers = new Set(lines.map((line) => line.worker));
  return lines.map((line) => {
    const parts = [
      modes.size > 1 ? (line.mode === "GLOBAL" ? "no mode" : line.mode) : "",
      workers.size > 1 ? line.worker : "",
    ].filter(Boolean);
    return parts.length ? `${subject(line)} (${parts.join(", ")})` : subject(line);
  });
}
