import { describe, expect, test } from "vitest";
import { loadExpected, loadRetailState, loadTasks, type TaskSet } from "../tau-retail/retail-data.ts";
import { canonicalJson, playCalls, sha256, stateHash, withChange } from "../tau-retail/retail-store.ts";
import { presentFolder, retailFolder } from "./retail-folder.ts";

describe.skipIf(retailFolder === null)("the retail store on the public data", () => {
  test.each<TaskSet>(["base", "v1"])(
    "ends every task of %s in the expected state, with every result",
    async (set) => {
      const folder = presentFolder();
      const [base, tasks, expected] = await Promise.all([
        loadRetailState(folder),
        loadTasks(folder, set),
        loadExpected(folder, set),
      ]);
      const played = tasks.map((task) => {
        const { results, state } = playCalls(base, task.actions);
        return {
          id: task.id,
          sha256: stateHash(state),
          results: results.map(({ content }) => sha256(content)),
          errors: results.flatMap(({ ok, errorCode }, index) => (ok ? [] : [{ index, code: errorCode }])),
        };
      });
      const wanted = tasks.map(({ id }) => {
        const task = expected.tasks[id];
        return { id, sha256: task?.sha256, results: task?.results, errors: task?.errors };
      });
      expect(played).toEqual(wanted);
      expect(played).toHaveLength(expected.totals.tasks);
    },
    60_000,
  );

  test.each<TaskSet>(["base", "v1"])("ends one store shared by the disjoint tasks of %s as expected", async (set) => {
    const folder = presentFolder();
    const tasks = new Map((await loadTasks(folder, set)).map((task) => [task.id, task]));
    const expected = await loadExpected(folder, set);
    let state = await loadRetailState(folder);
    for (const id of expected.shared_db.task_ids) state = playCalls(state, tasks.get(id)?.actions ?? []).state;
    expect(stateHash(state)).toBe(expected.shared_db.sha256);
  });

  test("hashes a changed state as its whole canonical text", async () => {
    const state = await loadRetailState(presentFolder());
    const [order] = Object.values(state.orders);
    if (order === undefined) throw new Error("the data holds no order");
    stateHash(state); // keeps the texts of the untouched objects
    const changed = withChange(state, { order: { ...order, status: "cancelled" } });
    expect(stateHash(changed)).toBe(sha256(canonicalJson(changed)));
    expect(stateHash(changed)).not.toBe(stateHash(state));
  });
});
