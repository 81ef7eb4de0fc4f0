// The layer rules (.dependency-cruiser.mjs). dependency-cruiser is content when it has seen nothing, for example
// because it found no TypeScript that it knows; so this also fails when a package or an app was not looked at.

import { spawnSync } from "node:child_process";
import { existsSync, readdirSync } from "node:fs";
import { join, resolve } from "node:path";

interface Violation {
  readonly from: string;
  readonly to: string;
  readonly rule: { readonly name: string; readonly severity: string };
}

interface CruiseResult {
  readonly modules: readonly { readonly source: string }[];
  readonly summary: { readonly violations: readonly Violation[]; readonly totalDependenciesCruised: number };
}

const ROOT = resolve(import.meta.dirname, "../..");

const result = cruise();
const unseen = ["packages", "apps"]
  .flatMap((folder) => readdirSync(join(ROOT, folder)).map((name) => `${folder}/${name}`))
  // A folder without a manifest is no package: documents.
  .filter((folder) => existsSync(join(ROOT, folder, "package.json")))
  .map((folder) => `${folder}/src/`)
  .filter((folder) => !result.modules.some(({ source }) => source.startsWith(folder)));
const { violations, totalDependenciesCruised } = result.summary;

for (const { from, to, rule } of violations) process.stdout.write(`${rule.name}: ${from} imports ${to}\n`);
for (const folder of unseen) process.stdout.write(`not looked at: ${folder}\n`);
process.stdout.write(
  `layers: ${result.modules.length} modules, ${totalDependenciesCruised} dependencies, ${violations.length} violations\n`,
);
process.exitCode = violations.length === 0 && unseen.length === 0 && totalDependenciesCruised > 0 ? 0 : 1;

function cruise(): CruiseResult {
  const program = join(ROOT, "node_modules/dependency-cruiser/bin/dependency-cruiser.mjs");
  const args = [program, "packages", "apps", "--config", ".dependency-cruiser.mjs", "--output-type", "json"];
  const { stdout, stderr, error } = spawnSync(process.execPath, args, {
    cwd: ROOT,
    encoding: "utf8",
    maxBuffer: 256 * 1024 * 1024,
  });
  if (error !== undefined) throw error;
  if (!stdout.startsWith("{")) throw new Error(`dependency-cruiser gave no result:\n${stderr}${stdout}`);
  return JSON.parse(stdout) as CruiseResult; // its documented output; a changed shape fails in the lines above
}
