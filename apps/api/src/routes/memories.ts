import { deleteMemory, findMemory, putMemory } from "@holdpoint/store";
import { listMemories, readId } from "@holdpoint/store/read";
import type { HandlerDeps } from "../deps.ts";
import { isOperator } from "../parts.ts";
import { ApiProblem, notFound } from "../problem.ts";
import { pageRequest, showPage } from "../run-access.ts";
import type { Handlers } from "../serve.ts";
import { showMemory } from "../show-schedule.ts";
import type { Caller } from "../tokens.ts";

/** What is kept about people beyond one conversation. */
export function memoryHandlers({ store }: HandlerDeps): Pick<Handlers, "listMemories" | "putMemory" | "deleteMemory"> {
  return {
    async listMemories({ caller, query }) {
      const page = await listMemories(store, subjectFor(caller, query.subject), pageRequest(query));
      return { body: showPage(page, showMemory) };
    },
    async putMemory({ caller, body: { key, value, validForMs, subject: named } }) {
      const subject = subjectFor(caller, named);
      return { body: showMemory(await putMemory(store, { subject, key, value, validForMs, by: caller.user })) };
    },
    async deleteMemory({ caller, params }) {
      const id = readId("memory", params.memoryId);
      const memory = id === null ? null : await findMemory(store, id);
      if (memory === null || !mayKeep(caller, memory.subject)) throw notFound("memory");
      if (!(await deleteMemory(store, { memoryId: memory.id, by: caller.user }))) throw notFound("memory");
      return { body: showMemory(memory) };
    },
  };
}

function subjectFor(caller: Caller, named: string | undefined): string {
  const subject = named ?? caller.user;
  if (mayKeep(caller, subject)) return subject;
  throw new ApiProblem(403, "forbidden", {
    detail: "What is kept about somebody else is for operators. Leave `subject` out to speak of yourself.",
  });
}

function mayKeep(caller: Caller, subject: string): boolean {
  return subject === caller.user || isOperator(caller);
}
