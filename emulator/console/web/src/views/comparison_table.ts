// The table of compared jobs: status, rules, last values and hyperparameters.

import type { Job } from "../api";
import { fill, h, name } from "../dom";
import { findDifferences, formatNumber, linkToJob } from "../format";
import { mark } from "../marks";

/** The last values of what is plotted: for each job, those of its lines. */
export interface Last {
  title: string;
  values: (number | null)[][];
}

export function showComparison(into: Element, jobs: Job[], last: Last[], everything: boolean): void {
  const parameters = jobs.map((each) => (each.request["HyperParameters"] ?? {}) as Record<string, string>);
  const keys = everything
    ? [...new Set(parameters.flatMap((each) => Object.keys(each)))].sort()
    : findDifferences(parameters);
  const row = (title: string, cells: (HTMLElement | string)[]): HTMLElement =>
    h(
      "tr",
      {},
      h("th", { scope: "row" }, name(title)),
      cells.map((cell) => h("td", {}, cell)),
    );
  fill(
    into,
    h("h2", {}, "What differs"),
    h(
      "div",
      { class: "scroll", tabindex: "0", role: "region", "aria-label": "What differs" },
      h(
        "table",
        {},
        h(
          "thead",
          {},
          h(
            "tr",
            {},
            h("td"),
            jobs.map((each) =>
              h("th", { scope: "col" }, h("a", { href: linkToJob(each.region, each.name) }, name(each.name))),
            ),
          ),
        ),
        h(
          "tbody",
          {},
          row(
            "Status",
            jobs.map((each) => mark(each.status)),
          ),
          row(
            "Rules",
            jobs.map((each) =>
              h(
                "ul",
                { class: "marks" },
                each.rules.map((rule) => h("li", {}, mark(rule.status, rule.name))),
              ),
            ),
          ),
          last.map((each) =>
            row(
              `${each.title}, last`,
              each.values.map((values) => values.map((value) => formatNumber(value)).join(", ") || "–"),
            ),
          ),
          keys.map((key) =>
            row(
              key,
              parameters.map((each) => (key in each ? name(each[key] ?? "") : "–")),
            ),
          ),
        ),
      ),
    ),
    keys.length ? null : h("p", { class: "quiet" }, "The hyperparameters are the same."),
  );
}
