import { expect, test } from "vitest";
import * as core from "../src/index.ts";

test("the package gives away these names and no other", () => {
  expect(Object.keys(core).sort()).toEqual([
    "ACTOR_KINDS",
    "CHOICES",
    "DEFAULT_DEADLINES",
    "EMPTY_CHECKPOINT",
    "ERROR_CLASSES",
    "FACT_RAISERS",
    "LONE_TAKEOVERS",
    "LOOK_UP_BACKOFF",
    "LOST_CLAIMS_LIMIT",
    "NOW",
    "OPERATOR_CHOICES",
    "RAISERS",
    "SETTLERS",
    "STATUSES",
    "TABLE",
    "TERMINAL_STATUSES",
    "actionsFor",
    "advance",
    "approvalFor",
    "atPresent",
    "backoffMs",
    "canonicalJson",
    "cellFor",
    "describe",
    "isTerminal",
    "isWaiting",
    "judgeLookUp",
    "mayRaise",
    "nextInWords",
    "operatorHold",
    "plan",
    "rebuildCheckpoint",
    "reduce",
    "rest",
    "storable",
    "storableText",
    "submitted",
    "takeOver",
  ]);
});

test("errors of calls and of model requests have one of these classes", () => {
  expect(core.ERROR_CLASSES).toEqual(["transient", "throttled", "refused", "caller", "unknown_outcome"]);
});
