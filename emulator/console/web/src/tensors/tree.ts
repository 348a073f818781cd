// The tree of a run's tensors, by collection, from which those to be shown are chosen.

import type { Run } from "../api";
import { debounce, fill, h, name } from "../dom";
import { groupTensors, type Group } from "./run_contents";

const MOST_CHOSEN = 8;
// Of a collection, all at once would make the page slow.
const MOST_LISTED = 500;

export class TensorTree {
  readonly element: HTMLElement;
  /** The newest choice last. */
  chosen: string[] = [];
  private run: Run | null = null;
  private readonly tree = h("div", { class: "tree" });
  private readonly search = h("input", {
    type: "search",
    placeholder: "tensor's name",
    "aria-label": "Search tensors",
    "data-search": true,
    input: debounce(() => this.draw(), 100),
  });

  /**
   * @param takesSeveral whether several tensors can be shown at once.
   * @param changed called when others are chosen.
   */
  constructor(
    private readonly takesSeveral: () => boolean,
    private readonly changed: () => void,
  ) {
    this.element = h("div", { class: "side" }, this.search, this.tree);
  }

  show(run: Run): void {
    this.run = run;
    this.draw();
  }

  private draw(): void {
    if (this.run === null) return;
    const opened = new Set(
      [...this.tree.querySelectorAll("details[open]")].map((each) => each.getAttribute("data-collection")),
    );
    fill(
      this.tree,
      groupTensors(this.run).map((group) => this.drawGroup(group, opened.has(group.name))),
    );
  }

  private drawGroup(group: Group, opened: boolean): HTMLElement | null {
    const words = this.search.value.toLowerCase();
    const names = group.tensors.filter((each) => each.toLowerCase().includes(words));
    if (!names.length) return null;
    const open = opened || words !== "" || names.some((each) => this.chosen.includes(each));
    const list = h("ul");
    // Hundreds of boxes take longer to make than a plot: those of a group that nobody has opened wait.
    const fillOnce = (): void => {
      if (list.childElementCount) return;
      const left = names.length - MOST_LISTED;
      fill(
        list,
        names.slice(0, MOST_LISTED).map((each) => this.drawTensor(each)),
        left > 0 ? h("li", { class: "quiet" }, `${left} more: search for them above.`) : null,
      );
    };
    const details = h(
      "details",
      {
        open,
        "data-collection": group.name,
        toggle: () => {
          if (details.open) fillOnce();
        },
      },
      h("summary", {}, name(group.name), h("span", { class: "quiet" }, ` ${names.length}`)),
      list,
    );
    if (open) fillOnce();
    return details;
  }

  private drawTensor(tensor: string): HTMLElement {
    const box = h("input", {
      type: "checkbox",
      checked: this.chosen.includes(tensor),
      value: tensor,
      change: () => this.choose(tensor, box.checked),
    });
    return h("li", {}, h("label", {}, box, name(tensor)));
  }

  private choose(tensor: string, wanted: boolean): void {
    const others = this.chosen.filter((each) => each !== tensor);
    if (!wanted) this.chosen = others;
    else this.chosen = this.takesSeveral() ? [...others, tensor].slice(-MOST_CHOSEN) : [tensor];
    // A tensor may be in several collections.
    for (const each of this.tree.querySelectorAll<HTMLInputElement>("input"))
      each.checked = this.chosen.includes(each.value);
    this.changed();
  }
}
