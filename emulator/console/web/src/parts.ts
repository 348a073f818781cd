// Parts that many views are made of: tables, lists, and regions that scroll.

import { h, type Attributes, type Content } from "./dom";

/** The head of a table: a heading for each column; null for one that needs none. */
export function tableHead(headings: Content[]): HTMLElement {
  return h(
    "thead",
    {},
    h(
      "tr",
      {},
      headings.map((each) => (each === null ? h("td") : h("th", { scope: "col" }, each))),
    ),
  );
}

/** A row of a table: what it is about, and its cells. */
export function row(subject: Content, cells: Content[], attributes: Attributes = {}): HTMLElement {
  return h(
    "tr",
    attributes,
    h("th", { scope: "row" }, subject),
    cells.map((each) => h("td", {}, each)),
  );
}

/** A table; without headings it has no head. */
export function table(headings: Content[], rows: HTMLElement[], attributes: Attributes = {}): HTMLElement {
  return h("table", attributes, headings.length ? tableHead(headings) : null, h("tbody", {}, rows));
}

/** A list without bullets. */
export function list(items: Content[], style = "plain"): HTMLElement {
  return h(
    "ul",
    { class: style },
    items.map((each) => h("li", {}, each)),
  );
}

/** Names, each with its value beside it. */
export function pairs(entries: [name: Content, value: Content][]): HTMLElement {
  return h(
    "dl",
    { class: "pairs" },
    entries.flatMap(([key, value]) => [h("dt", {}, key), h("dd", {}, value)]),
  );
}

/** A sentence beside what is shown, or in its place. */
export function quiet(...text: Content[]): HTMLElement {
  return h("p", { class: "quiet" }, ...text);
}

/** What is folded away below a summary. */
export function folded(summary: Content, ...children: Content[]): HTMLElement {
  return h("details", {}, h("summary", {}, summary), ...children);
}

/** What scrolls where it is too large; the keyboard reaches it, and a label says what it is. */
export function scrollable(label: string, ...children: Content[]): HTMLElement {
  return h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": label }, ...children);
}
