// What names of metrics tell: the mode, and what is measured.

/** The name of a metric without its mode, under which those of training and evaluation are drawn together. */
export function groupMetric(metric: string): string {
  return metric.replace(/_(TRAIN|EVAL|PREDICT|GLOBAL)$/, "").replace(/^(train|validation|eval|test)[:_]/, "");
}

/** The mode that a metric's name tells of, as `groupMetric` takes it off. */
export function findMode(metric: string): string | undefined {
  const [, suffix] = /_(TRAIN|EVAL|PREDICT|GLOBAL)$/.exec(metric) ?? [];
  const [, prefix] = /^(train|validation|eval|test)[:_]/.exec(metric) ?? [];
  return suffix ?? (prefix === undefined ? undefined : prefix === "train" ? "TRAIN" : "EVAL");
}
