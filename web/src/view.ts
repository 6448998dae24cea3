// SPDX-License-Identifier: Apache-2.0
// The state of a table, in the words of its address.

export const OPERATORS = ["eq", "ne", "lt", "le", "gt", "ge", "has", "empty", "filled"] as const;
export type Operator = (typeof OPERATORS)[number];
export const SIGNS: Record<Operator, string> = {
  eq: "=",
  ne: "≠",
  lt: "<",
  le: "≤",
  gt: ">",
  ge: "≥",
  has: "contains",
  empty: "is empty",
  filled: "is not empty",
};

export interface Condition {
  column: string;
  operator: Operator;
  value: string;
}

const VIEW = ["by", "sort", "q", "where", "contested"];

/** The parameters of an address that say what a table shows; the others are the page's own. */
export function viewOf(query: URLSearchParams): URLSearchParams {
  const view = new URLSearchParams();
  for (const name of VIEW) for (const value of query.getAll(name)) if (value !== "") view.append(name, value);
  return view;
}

/** The same, with the columns that were chosen: what a sample's page keeps for the way back. */
export function tableOf(query: URLSearchParams): URLSearchParams {
  const table = viewOf(query);
  for (const name of ["cols", "at"]) {
    const value = query.get(name);
    if (value) table.set(name, value);
  }
  return table;
}

export function readCondition(text: string): Condition | null {
  const parts = text.split(":");
  for (let place = 1; place < parts.length; place++) {
    const operator = OPERATORS.find((known) => known === parts[place]);
    if (operator) return { column: parts.slice(0, place).join(":"), operator, value: parts.slice(place + 1).join(":") };
  }
  return null;
}

export const writeCondition = (given: Condition): string => `${given.column}:${given.operator}:${given.value}`;
