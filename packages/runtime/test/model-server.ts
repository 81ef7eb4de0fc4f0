import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

/** A local server that speaks OpenAI's protocol as a test tells it to. */
export interface ModelServer extends AsyncDisposable {
  readonly baseUrl: string;
  /** Bodies of the requests so far. */
  readonly asked: RequestBody[];
  /** How it answers from now on. */
  answer: (request: IncomingMessage, response: ServerResponse, body: RequestBody) => void;
}

interface RequestBody {
  readonly messages: readonly unknown[];
  readonly stream: boolean;
  readonly tools?: readonly unknown[];
}

export async function openModelServer(): Promise<ModelServer> {
  const asked: ModelServer["asked"] = [];
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const body = JSON.parse(Buffer.concat(chunks).toString()) as RequestBody;
      asked.push(body);
      opened.answer(request, response, body);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  // Listening on a port of its own.
  const { port } = server.address() as AddressInfo;
  const opened: ModelServer = {
    baseUrl: `http://127.0.0.1:${port}/v1`,
    asked,
    answer: (_request, response) => void response.writeHead(404).end(),
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  return opened;
}

interface Delta {
  readonly content?: string;
  readonly tool_calls?: readonly object[];
}

/** One event of a streamed reply. */
export function chunk(delta: Delta, finish: string | null = null): string {
  const choice = { index: 0, delta: { role: "assistant", ...delta }, finish_reason: finish };
  return event({ choices: [choice] });
}

export const USAGE_CHUNK = event({ choices: [], usage: { prompt_tokens: 12, completion_tokens: 7, total_tokens: 19 } });
export const DONE = "data: [DONE]\n\n";

function event(fields: object): string {
  const body = { id: "c1", object: "chat.completion.chunk", created: 1, model: "m", ...fields };
  return `data: ${JSON.stringify(body)}\n\n`;
}

/** Streams these events and ends. */
export function stream(...events: readonly string[]): ModelServer["answer"] {
  return (_request, response) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    for (const each of events) response.write(each);
    response.end();
  };
}

/** Answers with an error as OpenAI words it. */
export function refuse(status: number, headers: Record<string, string> = {}, code = "x"): ModelServer["answer"] {
  return (_request, response) => {
    response.writeHead(status, { "content-type": "application/json", ...headers });
    response.end(JSON.stringify({ error: { message: "no", type: "x", code } }));
  };
}

/** A tool call in one piece. */
export function toolCall(index: number, name: string, args: string, id = `call_${index}`): object {
  return { index, id, type: "function", function: { name, arguments: args } };
}
