// Elements, made by hand: whatever a job is called or prints becomes text, never markup.

export type Child = Node | string | number | null | undefined | false;
/** What an element holds: one child, or several. */
export type Content = Child | Child[];
export type Attributes = Record<string, string | number | boolean | null | undefined | ((event: Event) => void)>;

/** Make an element; a function among the attributes listens to the event of its name. */
export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: Content[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") element.addEventListener(name, value);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  append(element, children);
  return element;
}

/** Make an element of a picture. */
export function svg<K extends keyof SVGElementTagNameMap>(
  tag: K,
  attributes: Record<string, string | number> = {},
  ...children: Content[]
): SVGElementTagNameMap[K] {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, String(value));
  append(element, children);
  return element;
}

function append(element: Element, children: Content[]): void {
  for (const child of children.flat()) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : String(child));
  }
}

/** Replace what an element holds. */
export function fill(element: Element, ...children: Content[]): void {
  element.replaceChildren();
  append(element, children);
}

/** A name that somebody gave: its direction is its own, so that it cannot reverse the text around it. */
export function name(text: string): HTMLElement {
  return h("bdi", {}, text);
}

/** A button, and what it does. */
export function button(text: Content, click: () => void, attributes: Attributes = {}): HTMLButtonElement {
  return h("button", { type: "button", click, ...attributes }, text);
}

/** A select with its label; an option is its value and its text, or one text that is both. */
export function choice(
  label: string,
  options: (string | [value: string, text: string])[],
  chosen: string,
  onChoice: (value: string) => void,
): HTMLLabelElement {
  const select = h(
    "select",
    { change: () => onChoice(select.value) },
    options.map((each) => {
      const [value, text] = typeof each === "string" ? [each, each] : each;
      return h("option", { value, selected: value === chosen }, text);
    }),
  );
  return h("label", {}, `${label} `, select);
}

/** A select that sets one of several choices; `changed` is called afterwards. */
export function choiceOf<K extends string>(
  label: string,
  options: (string | [value: string, text: string])[],
  choices: Record<K, string>,
  key: K,
  changed: () => void,
): HTMLLabelElement {
  return choice(label, options, choices[key], (value) => {
    choices[key] = value;
    changed();
  });
}

/** Wait a moment for more of the same, then do it once. */
export function debounce(act: () => void, milliseconds: number): () => void {
  let timer = 0;
  return () => {
    clearTimeout(timer);
    timer = window.setTimeout(act, milliseconds);
  };
}

/** Keep the keyboard's place when its element is replaced; elements are recognised by `data-key`. */
export function keepingFocus(change: () => void): void {
  const key = document.activeElement instanceof HTMLElement ? document.activeElement.dataset["key"] : undefined;
  change();
  if (key === undefined || document.activeElement !== document.body) return;
  for (const element of document.querySelectorAll<HTMLElement>("[data-key]")) {
    if (element.dataset["key"] === key) return element.focus();
  }
}
