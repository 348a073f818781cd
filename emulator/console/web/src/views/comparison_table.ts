// The table of compared jobs: status, rules, last values and hyperparameters.

import type { Job } from "../api";
import { fill, h, name, type Content } from "../dom";
import { findDifferences, formatNumber, linkToJob } from "../format";
import { mark, markRules } from "../marks";
import { quiet, row, scrollable, table } from "../parts";

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
  const names = jobs.map((each) => h("a", { href: linkToJob(each.region, each.name) }, name(each.name)));
  const rows: [title: string, cells: Content[]][] = [
    ["Status", jobs.map((each) => mark(each.status))],
    ["Rules", jobs.map((each) => markRules(each.rules))],
    ...last.map((each): [string, string[]] => [
      `${each.title}, last`,
      each.values.map((values) => values.map((value) => formatNumber(value)).join(", ") || "–"),
    ]),
    ...keys.map((key): [string, Content[]] => [
      key,
      parameters.map((each) => (key in each ? name(each[key] ?? "") : "–")),
    ]),
  ];
  fill(
    into,
    h("h2", {}, "What differs"),
    scrollable(
      "What differs",
      table(
        [null, ...names],
        rows.map(([title, cells]) => row(name(title), cells)),
      ),
    ),
    keys.length ? null : quiet("The hyperparameters are the same."),
  );
}
