// SPDX-License-Identifier: Apache-2.0
// Asking the server: answers, and events that go on.

/** An answer that says no, with the server's own words. */
export class Refusal extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
  ) {
    super(message);
  }
}

export type Params = URLSearchParams | string;

export function address(path: string, params?: Params): string {
  const query = String(params ?? "");
  return `/api/${path}${query === "" ? "" : `?${query}`}`;
}

export function runPath(key: string, ...rest: (string | number)[]): string {
  return ["runs", key, ...rest].map((part) => encodeURIComponent(part)).join("/");
}

export async function get<T>(path: string, params?: Params, signal?: AbortSignal): Promise<T> {
  return answer<T>(fetch(address(path, params), { credentials: "same-origin", ...(signal ? { signal } : {}) }));
}

export async function post<T>(path: string, body: unknown): Promise<T> {
  const headers = { "Content-Type": "application/json" };
  return answer<T>(fetch(address(path), { method: "POST", headers, body: JSON.stringify(body) }));
}

async function answer<T>(asked: Promise<Response>): Promise<T> {
  const response = await whole(asked);
  if (response.ok) return whole(response.json() as Promise<T>);
  const body: unknown = await response.json().catch(() => null);
  const said = (body as { error?: { code?: string; message?: string } } | null)?.error;
  throw new Refusal(response.status, said?.code ?? "error", said?.message ?? `The server answered ${response.status}.`);
}

/** What comes, if all of it comes: an answer may also break off, or be given up, after its beginning. */
async function whole<T>(coming: Promise<T>): Promise<T> {
  try {
    return await coming;
  } catch (problem) {
    if (problem instanceof DOMException && problem.name === "AbortError") throw problem;
    throw new Refusal(0, "unreachable", "The server does not answer. Start it again with `reward-kit view`.");
  }
}

/** Hears events until the function it returns is called. A connection that breaks is made again by the browser, unless
 * `broken` is given: then that is called with the reason. */
export function listen<T>(
  path: string,
  params: Params | undefined,
  hear: (event: T) => void,
  broken?: (problem: Refusal) => void,
): () => void {
  const source = new EventSource(address(path, params));
  source.onmessage = (event: MessageEvent<string>) => hear(JSON.parse(event.data) as T);
  source.addEventListener("problem", (event: MessageEvent<string>) => {
    source.close();
    const { code, message } = (JSON.parse(event.data) as { error: { code: string; message: string } }).error;
    broken?.(new Refusal(200, code, message));
  });
  source.onerror = () => {
    if (!broken) return;
    source.close();
    broken(new Refusal(0, "unreachable", "The connection to the server broke. Try again."));
  };
  return () => source.close();
}
