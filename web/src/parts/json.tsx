// SPDX-License-Identifier: Apache-2.0
// Values as JSON, with colours, in the order that they have.
import { Text } from "../text/text";

export function Json({ value }: { value: unknown }) {
  const text = typeof value === "string" ? laidOut(value) : JSON.stringify(value, null, 2);
  return <Text text={text ?? "null"} look="raw" language="json" />;
}

/** Lines of JSON as they stand in a file are laid out; what is none stays as it is. */
function laidOut(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}
