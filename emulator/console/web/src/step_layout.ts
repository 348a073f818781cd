// Layout of a pipeline's graph: steps in columns, each behind all that it needs.

export interface Step {
  name: string;
  needs: string[];
}

/** The column and the row of each step, in the order given. */
export function placeSteps(steps: Step[]): { column: number; row: number }[] {
  const byName = new Map(steps.map((step) => [step.name, step]));
  const columns = new Map<string, number>();
  const find = (name: string, above: string[]): number => {
    const known = columns.get(name);
    if (known !== undefined) return known;
    // Definitions with circles are refused when they are started; a picture must end all the same.
    const needs = (byName.get(name)?.needs ?? []).filter((each) => byName.has(each) && !above.includes(each));
    const column = needs.length ? 1 + Math.max(...needs.map((each) => find(each, [...above, name]))) : 0;
    columns.set(name, column);
    return column;
  };
  const filled = new Map<number, number>();
  return steps.map((step) => {
    const column = find(step.name, [step.name]);
    const row = filled.get(column) ?? 0;
    filled.set(column, row + 1);
    return { column, row };
  });
}
