import { describe, expect, test } from "vitest";
import { addTogether } from "../src/add-together.ts";

/** Sends nothing until it is told to, and notes what it was given. */
function aSlowServer() {
  const sent: { readonly jobs: readonly number[]; readonly answer: PromiseWithResolvers<void> }[] = [];
  return {
    sent,
    send(jobs: readonly number[]) {
      const answer = Promise.withResolvers<void>();
      sent.push({ jobs, answer });
      return answer.promise;
    },
    jobs: () => sent.map(({ jobs }) => jobs),
  };
}

const wanted = () => true;

describe("addTogether", () => {
  test("sends at once while fewer than its limit are under way, and joins what comes meanwhile", async () => {
    const server = aSlowServer();
    const add = addTogether({ send: server.send, atOnce: 2 });
    const all = [[1], [2], [3], [4, 5], [6]].map((jobs) => add(jobs, wanted));
    expect(server.jobs()).toEqual([[1], [2]]);
    server.sent[0]?.answer.resolve();
    await all[0];
    expect(server.jobs()).toEqual([[1], [2], [3, 4, 5, 6]]);
    for (const { answer } of server.sent) answer.resolve();
    await Promise.all(all);
  });

  test("tells each caller how its own jobs fared", async () => {
    const server = aSlowServer();
    const add = addTogether({ send: server.send, atOnce: 1 });
    const first = add([1], wanted);
    const joined = [add([2], wanted), add([3], wanted)];
    server.sent[0]?.answer.resolve();
    await first;
    const last = add([4], wanted);
    server.sent[1]?.answer.reject(new Error("refused"));
    for (const one of joined) await expect(one).rejects.toThrow("refused");
    server.sent[2]?.answer.resolve();
    await last;
    expect(server.jobs()).toEqual([[1], [2, 3], [4]]);
  });

  test("joins no more than its limit, but leaves a caller's own jobs together", async () => {
    const server = aSlowServer();
    const add = addTogether({ send: server.send, atOnce: 1, maxJoined: 3 });
    const all = [[0], [1, 2], [3], [4, 5, 6, 7], [8]].map((jobs) => add(jobs, wanted));
    for (let index = 0; index < 4; index += 1) {
      await Promise.resolve();
      server.sent[index]?.answer.resolve();
      await all[[0, 2, 3, 4][index] ?? 0];
    }
    expect(server.jobs()).toEqual([[0], [1, 2, 3], [4, 5, 6, 7], [8]]);
  });

  test("leaves out what nobody waits for any more", async () => {
    const server = aSlowServer();
    const add = addTogether({ send: server.send, atOnce: 1 });
    const first = add([1], wanted);
    let isWanted = true;
    void add([2], () => isWanted);
    const third = add([3], wanted);
    isWanted = false;
    server.sent[0]?.answer.resolve();
    await first;
    server.sent[1]?.answer.resolve();
    await third;
    expect(server.jobs()).toEqual([[1], [3]]);
  });

  test("refuses when too many wait, and takes more when they are gone", async () => {
    const server = aSlowServer();
    const add = addTogether({ send: server.send, atOnce: 1, maxWaiting: 2 });
    const first = add([1], wanted);
    const second = add([2, 3], wanted);
    await expect(add([4], wanted)).rejects.toThrow("More than 2");
    server.sent[0]?.answer.resolve();
    await first;
    const fifth = add([5], wanted);
    server.sent[1]?.answer.resolve();
    await second;
    server.sent[2]?.answer.resolve();
    await fifth;
    expect(server.jobs()).toEqual([[1], [2, 3], [5]]);
  });
});
