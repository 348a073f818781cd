// Parts that many views are made of: tables, and regions that scroll.

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

/** What scrolls where it is too large; the keyboard reaches it, and a label says what it is. */
export function scrollable(label: string, ...children: Content[]): HTMLElement {
  return h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": label }, ...children);
}
