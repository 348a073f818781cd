// Contents of a run: its groups of tensors, and what is shown of it at first.

import type { Run } from "../api";

// What the hook for XGBoost saves: feature_importance/KIND/FEATURE, a number a round.
const IMPORTANCE = /^feature_importance\/([^/]+)\//;

export interface Group {
  name: string;
  tensors: string[];
}

/** Say in a sentence what the run holds. */
export function describeRun(run: Run): string {
  const { count, first, last } = run.steps;
  const steps = count ? `${run.complete ? "" : "about "}${count} steps, ${first ?? 0} to ${last ?? 0}` : "no steps yet";
  const more = run.complete ? "" : " These numbers are estimated from a part of the steps.";
  return `${run.tensors.length} tensors, ${steps}${run.ended ? "" : "; more are coming"}.${more}`;
}

/** Collections that have tensors, and the tensors of none; "all" only where it is the only one. */
export function groupTensors(run: Run): Group[] {
  const groups: Group[] = run.collections
    .filter((each) => each.tensors.length)
    .map(({ name, tensors }) => ({ name, tensors }));
  const grouped = new Set(groups.flatMap((each) => each.tensors));
  const others = run.tensors.map((each) => each.name).filter((each) => !grouped.has(each));
  if (others.length) groups.push({ name: "in no collection", tensors: others });
  return groups.filter((each) => each.name !== "all" || groups.length === 1);
}

/** The tensor that is shown at first: a loss, or else the first of any collection; none in an empty run. */
export function chooseFirst(run: Run): string[] {
  const filled = run.collections.filter((each) => each.tensors.length);
  return (filled.find((each) => each.name === "losses") ?? filled[0])?.tensors.slice(0, 1) ?? [];
}

/** The first tensor of a collection, or else one that is named like it; "" where there is none. */
export function findNamed(run: Run, collection: "labels" | "predictions"): string {
  const collected = run.collections.find((each) => each.name === collection)?.tensors[0];
  const word = collection.slice(0, -1);
  return collected ?? run.tensors.find((each) => each.name.toLowerCase().includes(word))?.name ?? "";
}

/** The collection that is asked for, or else the first of several tensors; "" where there is none. */
export function chooseCollection(run: Run, wanted: string): string {
  const found = run.collections.find((each) => each.name === wanted && each.tensors.length);
  return (found ?? run.collections.find((each) => each.tensors.length > 1))?.name ?? "";
}

/** The kinds of importance that XGBoost's features were saved with. */
export function listImportances(run: Run): string[] {
  return [...new Set(run.tensors.flatMap((each) => IMPORTANCE.exec(each.name)?.[1] ?? []))];
}
