// SPDX-License-Identifier: Apache-2.0
// Bundles src/ into reward_kit/viewer/static/: index.html, and files whose names hold a digest of their contents.
// `node build.mjs --watch` rebuilds on every change.
import { build, context } from "esbuild";
import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";

const here = dirname(fileURLToPath(import.meta.url));
const out = join(here, "..", "reward_kit", "viewer", "static");
const LIMIT = 300_000; // bytes of all files together, compressed
const watch = process.argv.includes("--watch");

/** Writes the page that names the bundles. The sign in the browser's tab is a file too: nothing stands inline. */
function page(outputs) {
  const entry = Object.entries(outputs).find(([, made]) => made.entryPoint === "src/main.tsx");
  const script = entry[0].split("/").pop();
  const style = entry[1].cssBundle.split("/").pop();
  const sign = readFileSync(join(here, "src", "sign.svg"));
  const icon = `sign-${createHash("sha256").update(sign).digest("hex").slice(0, 8).toUpperCase()}.svg`;
  writeFileSync(join(out, icon), sign);
  const html = readFileSync(join(here, "src", "index.html"), "utf8");
  writeFileSync(join(out, "index.html"), html.replace("SCRIPT", script).replace("STYLE", style).replace("SIGN", icon));
}

/** The licences of what is in the bundle ask to go along with it. */
function licences(inputs) {
  const names = new Set(Object.keys(inputs).flatMap((path) => /^node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(path)?.[1] ?? []));
  const texts = [...names].sort().map((name) => `${name}\n\n${readFileSync(join(here, "node_modules", name, "LICENSE"), "utf8").trim()}\n`);
  writeFileSync(join(out, "licences.txt"), texts.join("\n\n"));
}

function weigh() {
  const sizes = readdirSync(out).map((name) => [name, gzipSync(readFileSync(join(out, name)), { level: 9 }).length]);
  const total = sizes.reduce((sum, [, size]) => sum + size, 0);
  for (const [name, size] of sizes) console.log(`${String(size).padStart(8)}  ${name}`);
  console.log(`${String(total).padStart(8)}  in all, compressed`);
  if (total > LIMIT) throw new Error(`The page's files take ${total} bytes compressed; at most ${LIMIT} are allowed.`);
}

const finish = {
  name: "finish",
  setup(on) {
    on.onStart(() => {
      rmSync(out, { recursive: true, force: true });
      mkdirSync(out, { recursive: true });
    });
    on.onEnd((result) => {
      if (result.errors.length > 0) return;
      page(result.metafile.outputs);
      licences(result.metafile.inputs);
      weigh();
    });
  },
};

const options = {
  absWorkingDir: here,
  entryPoints: { app: "src/main.tsx" },
  outdir: out,
  entryNames: "[name]-[hash]",
  chunkNames: "[name]-[hash]",
  assetNames: "[name]-[hash]",
  bundle: true,
  splitting: true,
  format: "esm",
  target: ["es2022"],
  jsx: "automatic",
  jsxImportSource: "preact",
  minify: !watch,
  legalComments: "none",
  charset: "utf8",
  metafile: true,
  logLevel: "info",
  plugins: [finish],
};

if (watch) await (await context(options)).watch();
else await build(options);
