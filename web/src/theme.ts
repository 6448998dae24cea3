// SPDX-License-Identifier: Apache-2.0
// Light, dark, or as the system has it.
import { signal } from "@preact/signals";

export type Theme = "system" | "light" | "dark";
const KEPT = "reward-kit-theme";
const ORDER: Theme[] = ["system", "light", "dark"];

function kept(): Theme {
  try {
    return ORDER.find((theme) => theme === localStorage.getItem(KEPT)) ?? "system";
  } catch {
    return "system";
  }
}

export const theme = signal<Theme>(kept());

export function applyTheme(): void {
  if (theme.value === "system") delete document.documentElement.dataset["theme"];
  else document.documentElement.dataset["theme"] = theme.value;
}

export function nextTheme(): void {
  theme.value = ORDER[(ORDER.indexOf(theme.value) + 1) % ORDER.length] ?? "system";
  try {
    localStorage.setItem(KEPT, theme.value);
  } catch {
    // Private windows keep nothing; the choice holds until the page is closed.
  }
  applyTheme();
}
