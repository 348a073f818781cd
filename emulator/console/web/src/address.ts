// Parameters of a view in the page's address: what is chosen can be kept as a bookmark and sent to others.

export function readParameters(): URLSearchParams {
  return new URLSearchParams(location.hash.split("?")[1] ?? "");
}

/** What is chosen for each key; "" where the address does not say. */
export function readChoices<K extends string>(...keys: K[]): Record<K, string> {
  const found = readParameters();
  return Object.fromEntries(keys.map((key) => [key, found.get(key) ?? ""])) as Record<K, string>;
}

export type Query = Record<string, string | number | string[] | undefined>;

/** The parameters that have values, as an address has them behind its path. */
export function writeQuery(values: Query): string {
  const found = new URLSearchParams();
  for (const [key, value] of Object.entries(values)) {
    for (const each of Array.isArray(value) ? value : [value]) {
      if (each !== undefined && each !== "") found.append(key, String(each));
    }
  }
  const text = found.toString();
  return text && `?${text}`;
}

/** Write the parameters that have values, in place of those before; the view stays, and so does the history. */
export function writeParameters(values: Record<string, string | string[]>): void {
  history.replaceState(history.state, "", `${location.hash.split("?")[0] || "#/jobs"}${writeQuery(values)}`);
}
