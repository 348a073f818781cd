// Parameters of a view in the page's address: what is chosen can be kept as a bookmark and sent to others.

export function readParameters(): URLSearchParams {
  return new URLSearchParams(location.hash.split("?")[1] ?? "");
}

/** What is chosen for each key; "" where the address does not say. */
export function readChoices<K extends string>(...keys: K[]): Record<K, string> {
  const found = readParameters();
  return Object.fromEntries(keys.map((key) => [key, found.get(key) ?? ""])) as Record<K, string>;
}

/** Write the parameters that have values, in place of those before; the view stays, and so does the history. */
export function writeParameters(values: Record<string, string | string[]>): void {
  const found = new URLSearchParams();
  for (const [key, value] of Object.entries(values)) {
    for (const each of Array.isArray(value) ? value : [value]) if (each) found.append(key, each);
  }
  const text = found.toString();
  history.replaceState(history.state, "", `${location.hash.split("?")[0] || "#/jobs"}${text && `?${text}`}`);
}
