import type { Service } from "@holdpoint/protocol";
import type { View } from "../context.ts";
import { renderTable } from "../table.ts";
import { local, localAndRelative } from "../times.ts";

const COLUMNS = [
  { title: "SERVICE", max: 30 },
  { title: "STATE", max: 48 },
  { title: "BECAUSE", max: 24 },
  { title: "SINCE", max: 20 },
  { title: "RUNS WAIT", max: null },
];

/** Services in trouble as a table. */
export function showServices(services: readonly Service[], { out, now }: View): string {
  if (services.length === 0) return "every service answers\n";
  const rows = services.map((service) => [
    service.name,
    { text: stateOf(service, now), paint: service.closed ? out.colours.bad : out.colours.waiting },
    `${service.reason}, ${service.failures} in a row`,
    local(service.since),
    String(service.waitingRuns),
  ]);
  return renderTable(COLUMNS, rows, out);
}

function stateOf({ closed, closedUntil, probing }: Service, now: Date): string {
  if (closed && closedUntil !== null) return `closed until ${localAndRelative(closedUntil, now)}`;
  if (probing) return "one run is trying it";
  return closedUntil === null ? "still called" : "to be tried by the next run";
}
