// Where the calls of a flame graph are: how far left, how wide, how deep.

import type { Call } from "./api";

export interface Box {
  flame: Call;
  left: number;
  width: number;
  row: number;
}

// Narrower than this, in pixels, a call cannot be pointed at.
export const NARROWEST = 0.6;

/** Lay a call out over a width, and what it called below it. */
export function layOut(flame: Call, width: number): Box[] {
  const boxes: Box[] = [];
  const place = (each: Call, left: number, wide: number, row: number): void => {
    boxes.push({ flame: each, left, width: wide, row });
    let at = left;
    for (const child of each.children) {
      const part = each.seconds > 0 ? (child.seconds / each.seconds) * wide : 0;
      if (part >= NARROWEST) place(child, at, part, row + 1);
      at += part;
    }
  };
  place(flame, 0, width, 0);
  return boxes;
}
