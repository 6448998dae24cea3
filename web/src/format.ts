// SPDX-License-Identifier: Apache-2.0
// Numbers, times and sizes as people read them. Scores have three decimals, as in the terminal.
import type { Cell, ColumnInfo, Estimate } from "./wire";

const whole = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });

export const count = (value: number): string => whole.format(value);

export const plural = (value: number, one: string, many = `${one}s`): string =>
  `${count(value)} ${value === 1 ? one : many}`;

export function score(value: number | null | undefined): string {
  if (value === null || value === undefined) return "–";
  return Number.isFinite(value) ? value.toFixed(3).replace("-", "−") : String(value);
}

export function signed(value: number): string {
  return (value < 0 ? "−" : "+") + Math.abs(value).toFixed(3);
}

export const interval = (low: number | null, high: number | null): string =>
  low === null || high === null ? "" : `${score(low)} … ${score(high)}`;

export function spoken(name: string, estimate: Estimate): string {
  const between = estimate.low === null || estimate.high === null ? "" : `, ${percent(estimate.confidence)} interval ${score(estimate.low)} to ${score(estimate.high)}`;
  return `${name} ${score(estimate.value)}${between}`;
}

export const percent = (value: number): string => `${(100 * value).toFixed(value < 0.1 && value > 0 ? 1 : 0)} %`;

/** A number with about four figures that matter. */
export function number(value: number): string {
  if (!Number.isFinite(value)) return String(value);
  if (Number.isInteger(value)) return count(value);
  const size = Math.abs(value);
  if (size >= 1000) return count(value);
  return String(Number(value.toPrecision(size < 1 ? 3 : 4)));
}

export function money(value: number | null): string {
  if (value === null) return "–";
  return `$${value >= 100 ? count(value) : value.toFixed(value < 0.1 && value > 0 ? 4 : 2)}`;
}

export function milliseconds(value: number): string {
  if (value < 1000) return `${Math.round(value)} ms`;
  return seconds(value / 1000);
}

export function seconds(value: number): string {
  if (value < 0.1) return `${Math.round(1000 * value)} ms`;
  if (value < 60) return `${value.toFixed(1)} s`;
  if (value < 3600) return `${Math.floor(value / 60)} min ${Math.round(value % 60)} s`;
  return `${Math.floor(value / 3600)} h ${Math.round((value % 3600) / 60)} min`;
}

export function when(text: string | null): string {
  if (!text) return "–";
  const time = new Date(text);
  if (Number.isNaN(time.getTime())) return text;
  const two = (part: number): string => String(part).padStart(2, "0");
  const date = `${time.getFullYear()}-${two(time.getMonth() + 1)}-${two(time.getDate())}`;
  return `${date} ${two(time.getHours())}:${two(time.getMinutes())}`;
}

export function size(characters: number): string {
  if (characters < 10_000) return plural(characters, "character");
  if (characters < 1_000_000) return `${Math.round(characters / 1000)} thousand characters`;
  return `${(characters / 1_000_000).toFixed(1)} million characters`;
}

const SCORES = new Set(["score", "best", "worst", "rate", "mean"]);

export function isScore(column: ColumnInfo): boolean {
  return column.type === "number" && (SCORES.has(column.name) || column.group === "metric");
}

export function cell(value: Cell, column: ColumnInfo): string {
  if (value === null) return "";
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (typeof value === "string") return value;
  if (isScore(column)) return score(value);
  if (column.name === "cost") return money(value);
  if (column.name === "index") return String(value);
  return number(value);
}

/** Seconds, tokens, dollars and the like, with their unit. */
export function quantity(value: number, unit: string): string {
  if (unit === "ms") return milliseconds(value);
  if (unit === "s") return seconds(value);
  if (unit === "$" || unit === "USD") return money(value);
  return number(value);
}
