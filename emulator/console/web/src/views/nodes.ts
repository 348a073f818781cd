// The nodes of a Swarm: what runs where, what waits and why. Where jobs run on one machine, there is nothing to show.

import { ask, type Health, type Swarm } from "../api";
import { fill, h, name } from "../dom";
import { formatBytes } from "../format";
import { list, tableHead } from "../parts";

const AGAIN_MS = 3000;

/** Show them in an element as long as they are of use; the function that is returned ends that. */
export function showNodes(into: Element): () => void {
  let ended = false;
  let timer = 0;
  const again = (): void => {
    if (!ended) timer = window.setTimeout(() => void look(), AGAIN_MS);
  };
  const look = async (): Promise<void> => {
    const swarm = await ask<Health>("health").then(
      (health) => health.swarm ?? null,
      () => undefined,
    );
    if (ended || swarm === null) return;
    // While the emulator is away, what is shown stays.
    if (swarm !== undefined) fill(into, describe(swarm));
    again();
  };
  void look();
  return () => {
    ended = true;
    clearTimeout(timer);
  };
}

function describe(swarm: Swarm): HTMLElement {
  const containers = (each: Swarm["nodes"][number]): HTMLElement =>
    each.containers.length ? list(each.containers.map(name)) : h("span", { class: "quiet" }, "–");
  return h(
    "section",
    { "aria-labelledby": "nodes" },
    h("h2", { id: "nodes" }, "Nodes"),
    swarm.error ? h("p", { class: "problem", role: "status" }, swarm.error) : null,
    h(
      "table",
      { class: "jobs", hidden: !swarm.nodes.length },
      h("caption", { class: "unseen" }, "Nodes of the Swarm, and what runs on each"),
      tableHead(["Node", "State", "Has", "Runs"]),
      h(
        "tbody",
        {},
        swarm.nodes.map((each) =>
          h(
            "tr",
            { "data-node": each.address },
            h(
              "td",
              { "data-label": "Node" },
              name(each.name),
              h("span", { class: "quiet region" }, ` ${each.address}`),
            ),
            h("td", { "data-label": "State" }, each.state),
            h("td", { "data-label": "Has" }, `${each.cpus} processors, ${formatBytes(each.memoryBytes)}`),
            h("td", { "data-label": "Runs" }, containers(each)),
          ),
        ),
      ),
    ),
    swarm.waiting.length ? list(swarm.waiting.map((each) => [name(each.container), " waits: ", each.why])) : null,
  );
}
