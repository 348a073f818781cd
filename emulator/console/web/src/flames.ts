// A flame graph: which function took how much, below the one that called it; widths are time.

import type { Call } from "./api";
import { layOut, NARROWEST, type Box } from "./calls_layout";
import { button, h } from "./dom";
import { formatNumber } from "./format";

const ROW = 22;
/** The colour of a function: the same for all of a file, none for what Python has built in. */
function pickFill(flame: Call): string {
  if (!flame.file) return "hsl(210 12% 80%)";
  let hash = 0;
  for (const letter of flame.file) hash = (hash * 31 + letter.charCodeAt(0)) >>> 0;
  return `hsl(${15 + (hash % 45)} 85% ${68 + (hash % 3) * 5}%)`;
}

export function locate(flame: { file: string; line: number }): string {
  return flame.file ? `${flame.file.split("/").slice(-2).join("/")}:${flame.line}` : "built in";
}

/** Draw it; a call that is pointed at, or reached by arrow keys, is described in words, and fills the width when it is chosen. */
export function drawFlames(title: string, root: Call): { element: HTMLElement; close: () => void } {
  const parents = new Map<Call, Call>();
  const link = (flame: Call): void => {
    for (const child of flame.children) {
      parents.set(child, flame);
      link(child);
    }
  };
  link(root);
  let [top, current] = [root, root];
  let boxes: Box[] = [];
  const canvas = h("canvas", { class: "flames", role: "img", tabindex: "0" });
  const said = h(
    "output",
    {},
    "Point at a call, or use the arrow keys; Enter, or a click, widens it, and Escape goes back.",
  );
  const out = button("Show all", () => widen(root));
  const element = h(
    "figure",
    { class: "plot" },
    h("figcaption", {}, title),
    h("p", { class: "buttons" }, out),
    canvas,
    said,
  );

  const draw = (): void => {
    const width = Math.max(200, canvas.parentElement?.clientWidth ?? 0);
    boxes = layOut(top, width);
    const rows = boxes.reduce((most, box) => Math.max(most, box.row), 0) + 1;
    canvas.width = width * devicePixelRatio;
    canvas.height = rows * ROW * devicePixelRatio;
    canvas.style.height = `${rows * ROW}px`;
    const ctx = canvas.getContext("2d");
    if (!ctx) return;
    ctx.scale(devicePixelRatio, devicePixelRatio);
    ctx.font = "12px system-ui, sans-serif";
    ctx.textBaseline = "middle";
    for (const { flame, left, width: wide, row } of boxes) {
      ctx.fillStyle = pickFill(flame);
      ctx.fillRect(left, row * ROW, Math.max(wide - 1, NARROWEST), ROW - 1);
      if (flame === current) {
        ctx.strokeStyle = "#0b3d6e";
        ctx.lineWidth = 2;
        ctx.strokeRect(left + 1, row * ROW + 1, Math.max(wide - 3, 1), ROW - 3);
      }
      if (wide < 28) continue;
      ctx.save();
      ctx.beginPath();
      ctx.rect(left, row * ROW, wide - 4, ROW);
      ctx.clip();
      ctx.fillStyle = "#1b1f24";
      ctx.fillText(flame.name, left + 4, row * ROW + ROW / 2);
      ctx.restore();
    }
    out.disabled = top === root;
  };
  const say = (flame: Call): void => {
    current = flame;
    const share = root.seconds > 0 ? (100 * flame.seconds) / root.seconds : 0;
    said.textContent = `${flame.name} (${locate(flame)}): ${formatNumber(flame.seconds)} s, ${formatNumber(Number(share.toPrecision(3)))} % of all; ${formatNumber(flame.own)} s in itself`;
    draw();
  };
  const widen = (flame: Call): void => {
    top = flame;
    say(flame);
  };
  const find = (event: MouseEvent): Call | undefined => {
    const frame = canvas.getBoundingClientRect();
    const [x, row] = [event.clientX - frame.left, Math.floor((event.clientY - frame.top) / ROW)];
    return boxes.find((box) => box.row === row && x >= box.left && x <= box.left + box.width)?.flame;
  };
  canvas.addEventListener("pointermove", (event) => {
    const found = find(event);
    if (found && found !== current) say(found);
  });
  canvas.addEventListener("click", (event) => {
    const found = find(event);
    if (found) widen(found);
  });
  const step = (by: number): Call | undefined => {
    const beside = parents.get(current)?.children ?? [];
    return beside[beside.indexOf(current) + by];
  };
  canvas.addEventListener("keydown", (event) => {
    const moves: Record<string, () => Call | undefined> = {
      ArrowDown: () => current.children[0],
      ArrowUp: () => (current === top ? undefined : parents.get(current)),
      ArrowLeft: () => (current === top ? undefined : step(-1)),
      ArrowRight: () => (current === top ? undefined : step(1)),
    };
    const move = moves[event.key];
    if (move) {
      const found = move();
      if (found) say(found);
    } else if (event.key === "Enter") widen(current);
    else if (event.key === "Escape") widen(parents.get(top) ?? root);
    else return;
    event.preventDefault();
  });
  canvas.setAttribute(
    "aria-label",
    `${title}: ${formatNumber(root.seconds)} s in all. Arrow keys go through the calls.`,
  );
  const sizes = new ResizeObserver(draw);
  sizes.observe(element);
  return { element, close: () => sizes.disconnect() };
}
