import { parseArgs } from "node:util";
import { setUpRefundDesk } from "./setup.ts";
import { readSetupConfig } from "./setup-config.ts";

const HELP = `Sets the refund desk up: makes its database and fills it with about 300 orders, ord_4200 to ord_4499,
and makes their payments known to the payment sandbox. May be repeated: what is there stays, and the dates of orders
that nobody refunded are moved on once they are more than 7 days old.

Usage: node apps/refund-desk/src/main-setup.ts

  REFUND_DESK_DATABASE_URL  the orders' database; made where it is missing
  REFUND_DESK_STRIPE_URL    the payment sandbox, running; leave out to use Stripe itself
  --help                    this text

It prints one line {"event":"refund_desk.ready",…} that says what it had to do.
`;

const TIME_LIMIT_MS = 60_000;

async function main(): Promise<void> {
  const { values } = parseArgs({ options: { help: { type: "boolean" } } });
  if (values.help === true) {
    process.stdout.write(HELP);
    return;
  }
  const config = readSetupConfig(process.env);
  const done = await setUpRefundDesk(config, { now: new Date(), signal: AbortSignal.timeout(TIME_LIMIT_MS) });
  process.stdout.write(`${JSON.stringify({ event: "refund_desk.ready", ...done })}\n`);
}

try {
  await main();
} catch (error) {
  process.stderr.write(`refund desk set-up: ${error instanceof Error ? error.message : String(error)} (see --help)\n`);
  process.exitCode = 1;
}
