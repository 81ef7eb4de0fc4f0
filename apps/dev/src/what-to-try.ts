import pc from "picocolors";
import { TOKEN } from "./development-tokens.ts";
import type { Fleet } from "./fleet.ts";

const COMMAND = "apps/cli/holdpoint";
const GOAL = "Please refund order ord_4411, it arrived broken. I am jonas.nowak@example.com";
const LARGE_GOAL = "Please refund order ord_4447, it arrived broken. I am nadia.lindqvist@example.com";

/** What runs where, and lines to paste into another terminal. */
export function whatToTry({ apiUrl, sandboxUrl, postgresPort, databaseUrl, logs }: Fleet): string {
  const as = (user: keyof typeof TOKEN, command: string) => `  HOLDPOINT_TOKEN=${TOKEN[user]} ${COMMAND} ${command}`;
  return `
${pc.bold("Holdpoint is running.")}

  api              ${apiUrl}  ${pc.dim("(every route: /openapi.json)")}
  payment sandbox  ${sandboxUrl}  ${pc.dim("(the money: /sandbox/ledger)")}
  Postgres         port ${postgresPort}  ${pc.dim(databaseUrl)}
  logs             ${logs}
  people           alice asks, mona and max are managers, fay and fred are finance, olga is the operator

${pc.bold("Try, in another terminal in this folder:")}

  export HOLDPOINT_API_URL=${apiUrl}

${pc.dim("  # A customer asks for a refund; the agent looks up, quotes, and waits for a manager.")}
${as("alice", `runs submit refund-desk@1 "${GOAL}"`)}
${as("olga", "runs list")}
${as("mona", "approvals list")}

${pc.dim("  # Look at the request from the list and approve it (or edit it, which changes what runs); then see the run.")}
${as("mona", "approvals show <apr_…>")}
${as("mona", "approvals approve <apr_…> --yes")}
${as("alice", "runs show <run_…>")}
${as("olga", "workers")}

${pc.dim("  # Above 400.00 two of finance approve.")}
${as("alice", `runs submit refund-desk@1 "${LARGE_GOAL}"`)}
${as("fay", "approvals approve <apr_…> --yes")}
${as("fred", "approvals approve <apr_…> --yes")}

${pc.dim("  # The same without the command line tool:")}
  curl -s -H 'authorization: Bearer ${TOKEN.olga}' ${apiUrl}/runs
  curl -s ${sandboxUrl}/sandbox/ledger

Ctrl-C drains and stops everything; the next start goes on with the same data.
`;
}
