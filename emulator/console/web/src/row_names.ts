// Names of a heat map's rows, shortened to what fits beside them.

const MOST_CHARACTERS = 26;

/** The names without what all begin with, and cut in their middle, where they begin and end being what differs. */
export function shortenNames(names: string[], most = MOST_CHARACTERS): string[] {
  const common = findCommonStart(names);
  return names.map((name) => cut(common ? `…${name.slice(common)}` : name, most));
}

function findCommonStart(names: string[]): number {
  const [first = "", ...others] = names;
  if (!others.length) return 0;
  let common = first.length;
  for (const name of others) {
    let same = 0;
    while (same < common && name[same] === first[same]) same++;
    common = same;
  }
  // Up to the last separator: half a word tells nothing.
  const start = Math.max(...["/", ".", "_", ":"].map((mark) => first.lastIndexOf(mark, common - 1))) + 1;
  return start > 3 ? start : 0;
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
