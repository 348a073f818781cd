// Where the calls of a flame graph are: how far left, how wide, how deep.

export interface Flame { name: string; file: string; line: number; seconds: number; own: number; children: Flame[] }

export interface Box { flame: Flame; left: number; width: number; row: number }

// Narrower than this, in pixels, a call cannot be pointed at.
export const NARROWEST = 0.6;

/** Lay a call out over a width, and what it called below it. */
export function layOut(flame: Flame, width: number): Box[] {
  const boxes: Box[] = [];
  const place = (each: Flame, left: number, wide: number, row: number): void => {
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
