import { findRetailData } from "../tau-retail/retail-data.ts";

/** The data's folder, or null where it is absent; then it says so once per file, and tests that need it are skipped. */
export const retailFolder: string | null = findRetailData(process.env);

if (retailFolder === null) {
  process.stderr.write(
    "tau-retail data is absent (HOLDPOINT_RETAIL_DATA or ../shared/data/tau-retail): its tests are skipped\n",
  );
}

/** The folder, for tests that are skipped without it. */
export function presentFolder(): string {
  if (retailFolder === null) throw new Error("this test should have been skipped: the tau-retail data is absent");
  return retailFolder;
}
