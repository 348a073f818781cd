// Names of a heat map's rows, shortened to what fits beside them.

/** The names; where one does not fit, all without what they begin with, and cut in their middle: their ends differ. */
export function shortenNames(names: string[], most: number): string[] {
  const fits = (start: number): boolean => names.every((name) => name.length - start + (start ? 1 : 0) <= most);
  // As much as fits stays: a layer is known by its name and number.
  const start = [0, ...findCommonStarts(names)].find(fits) ?? findCommonStarts(names).at(-1) ?? 0;
  return names.map((name) => cut(start ? `…${name.slice(start)}` : name, most));
}

/** Where names that begin alike may be cut off, after a separator: half a word tells nothing. */
function findCommonStarts(names: string[]): number[] {
  const [first = "", ...others] = names;
  if (!others.length) return [];
  let common = first.length;
  for (const name of others) {
    let same = 0;
    while (same < common && name[same] === first[same]) same++;
    common = same;
  }
  const starts = [...first.slice(0, common).matchAll(/[/._:]/g)].map((found) => found.index + 1);
  return starts.filter((start) => start > 3);
}

function cut(name: string, most: number): string {
  const letters = Array.from(name);
  if (letters.length <= most) return name;
  const end = Math.ceil((most - 1) * 0.6);
  return `${letters.slice(0, most - 1 - end).join("")}…${letters.slice(-end).join("")}`;
}

/** The rows whose names are shown, evenly: each where they fit, and the first. */
export function chooseLabelled(rows: number, height: number, lineHeight: number): number[] {
  const every = Math.max(1, Math.ceil((rows * lineHeight) / height));
  return Array.from({ length: Math.ceil(rows / every) }, (_, index) => index * every);
}
