// SPDX-License-Identifier: Apache-2.0
// The page: what stands at which address.
import { render } from "preact";
import { useEffect } from "preact/hooks";
import { get } from "./api";
import { learn, server } from "./data";
import { place } from "./place";
import { ComparePage } from "./pages/compare";
import { OverviewPage } from "./pages/overview";
import { ReviewMode } from "./pages/review";
import { RunSummary } from "./pages/run";
import { Sample } from "./pages/sample";
import { Table } from "./pages/table";
import { Frame } from "./parts/frame";
import { applyTheme } from "./theme";
import type { Overview } from "./wire";
import "./style.css";

function Page() {
  const { path, query } = place.value;
  useEffect(() => {
    // What every page wants to know of the server; the overview asks for itself.
    if (!server.value && path !== "/") get<Overview>("runs").then(learn, () => undefined);
  }, []);
  if (path === "/") return <OverviewPage />;
  if (path === "/compare") return <ComparePage runs={(query.get("runs") ?? "").split(",").filter(Boolean)} />;
  const [, room, key, page, ...rest] = path.split("/").map(decoded);
  if (room === "runs" && key && rest.length === 0) {
    if (page === undefined || page === "") return <RunSummary key={key} run={key} />;
    if (page === "table") return <Table key={key} run={key} />;
    if (page === "sample") return <Sample key={key} run={key} id={query.get("id") ?? ""} />;
    if (page === "review") return <ReviewMode key={key} run={key} />;
  }
  return (
    <Frame title="Nothing here">
      <h1>Nothing here</h1>
      <p>
        No page has this address. <a href="/">All runs</a>
      </p>
    </Frame>
  );
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

applyTheme();
render(<Page />, document.getElementById("page")!);
