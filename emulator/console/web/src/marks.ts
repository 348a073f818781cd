// Statuses as marks: a shape and a word beside the colour, which nobody needs to see.

import type { Rule, Warning } from "./api";
import { h } from "./dom";
import { list } from "./parts";

const SHAPES: Record<string, [shape: string, kind: string]> = {
  InProgress: ["◐", "running"],
  Stopping: ["◧", "running"],
  Completed: ["●", "good"],
  NoIssuesFound: ["●", "good"],
  IssuesFound: ["▲", "bad"],
  Failed: ["✖", "bad"],
  Error: ["✖", "bad"],
  Stopped: ["■", "still"],
  // Of a pipeline's steps.
  Starting: ["◐", "running"],
  Executing: ["◐", "running"],
  Succeeded: ["●", "good"],
};

/** The shape and the style of a status. */
export function readMark(status: string): [shape: string, kind: string] {
  return SHAPES[status] ?? ["○", "still"];
}

/** The mark of a status, with its word; what it is of may be said before it. */
export function mark(status: string, of = ""): HTMLElement {
  const [shape, kind] = readMark(status);
  const words = of ? [h("bdi", {}, of), ": ", status] : [status];
  return h(
    "span",
    { class: `mark ${kind}`, "data-status": status },
    h("span", { "aria-hidden": "true" }, `${shape} `),
    words,
  );
}

/** The marks of a job's rules. */
export function markRules(rules: Pick<Rule, "name" | "status">[]): HTMLElement {
  return list(
    rules.map((each) => mark(each.status, each.name)),
    "marks",
  );
}

/** The mark of a job's warnings, of which its page has the texts; null without any. */
export function markWarnings(warnings: Warning[]): HTMLElement | null {
  if (!warnings.length) return null;
  const title = warnings.map((each) => `${each.code}: ${each.text}`).join("\n");
  return h(
    "span",
    { class: "warned", title },
    h("span", { "aria-hidden": "true" }, " ⚠ "),
    `${warnings.length} ${warnings.length === 1 ? "warning" : "warnings"}`,
  );
}

/** What runs in place of what a job asked for, such as another version; null where that is the same. */
export function tellSubstitutions(warnings: Warning[]): HTMLElement | null {
  const briefs = warnings.map((each) => each.brief).filter(Boolean);
  return briefs.length ? h("div", { class: "quiet" }, briefs.join("; ")) : null;
}
