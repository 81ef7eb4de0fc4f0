import { decideApproval, grantRoles, loadRun, type Store } from "../../packages/store/src/index.ts";

const MANAGER = { kind: "approver", id: "mona" } as const;

/** A manager approves what the run waits for. */
export async function approve(store: Store, runId: string): Promise<void> {
  await grantRoles(store, { grants: [{ user: MANAGER.id, role: "manager" }], by: "otto" });
  const loaded = await loadRun(store, runId);
  const pending = (loaded?.approvals ?? []).filter(({ state }) => state === "pending");
  for (const { id: approvalId, argsHash } of pending) {
    const decided = { approvalId, decision: "approve", argsHash, note: null, actor: MANAGER } as const;
    const { result } = await decideApproval(store, decided);
    if (result !== "accepted") throw new Error(`the approval was ${result}`);
  }
}
