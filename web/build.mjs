// Builds the page into a folder: node build.mjs [OUT] [TOOLS]. TOOLS is where node_modules lies, if not beside this file.
import { copyFile, mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const out = resolve(process.argv[2] ?? join(here, "../src/offbook/api/web/static"));
const tools = resolve(process.argv[3] ?? here);
const { build } = createRequire(join(tools, "package.json"))("esbuild");

await rm(out, { recursive: true, force: true });
await mkdir(out, { recursive: true });
await build({
  absWorkingDir: here,
  entryPoints: { page: "src/main.tsx" },
  outdir: out,
  bundle: true,
  minify: true,
  format: "esm",
  target: "es2022",
  jsx: "automatic",
  jsxImportSource: "preact",
  nodePaths: [join(tools, "node_modules")],
  charset: "utf8",
  legalComments: "none",
  logLevel: "warning",
});
const licence = await readFile(join(tools, "node_modules/preact/LICENSE"), "utf8");
await writeFile(join(out, "licences.txt"), `page.js contains Preact:\n\n${licence}`);
for (const name of ["index.html", "icon.svg"]) await copyFile(join(here, "src", name), join(out, name));
