// Metrics and losses over time, and what the containers took.

import { ask, type Metrics } from "../api";
import { fill, h } from "../dom";
import { findMode, groupMetric } from "../metric_names";
import type { PlottedLine } from "../plot_data";
import { LinePlot } from "../plots";
import { load, type Part } from "./view";

export function showMetrics(root: Element, path: string): Part {
  const plots = new Map<string, LinePlot>();
  const said = h("p", { class: "quiet", role: "status" }, "Loading …");
  const grid = h("div", { class: "plots" });
  let timer = 0;
  const refresh = (): Promise<void> =>
    load(said, async () => {
      const found = await ask<Metrics>(`${path}/metrics`);
      const groups = new Map<string, PlottedLine[]>();
      for (const metric of found.series) {
        const group = metric.host ? metric.name : groupMetric(metric.name);
        const lines = groups.get(group) ?? [];
        const mode = metric.host ? undefined : findMode(metric.name);
        lines.push({
          label: metric.host || metric.name,
          ...(mode ? { mode, subject: group } : {}),
          at: metric.timesMs.map((time) => time / 1000),
          values: metric.values,
        });
        groups.set(group, lines);
      }
      fill(
        said,
        found.series.length ? "" : "No metrics yet: MetricDefinitions and losses that the hook saves make them.",
      );
      for (const [group, lines] of groups) {
        let plot = plots.get(group);
        if (!plot) {
          plot = new LinePlot({
            title: /Utilization$/.test(group) ? `${group} (%)` : group,
            x: "time",
            time: true,
            height: 200,
          });
          plots.set(group, plot);
          grid.append(plot.element);
        }
        plot.show(lines);
      }
    });
  fill(root, said, grid);
  const soon = (): void => {
    if (!timer)
      timer = window.setTimeout(() => {
        timer = 0;
        void refresh();
      }, 500);
  };
  void refresh();
  return {
    update: soon,
    progress: soon,
    close: () => {
      clearTimeout(timer);
      for (const plot of plots.values()) plot.close();
    },
  };
}
