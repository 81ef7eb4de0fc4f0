// One address for a supervisor and all of its processes: they come and go, and the one that hangs is told by the others.
import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { Log } from "@holdpoint/runtime";
import { PrometheusSerializer } from "@opentelemetry/exporter-prometheus";
import { MeterProvider, type MetricData, type ScopeMetrics } from "@opentelemetry/sdk-metrics";
import { askForMetrics } from "./ask-for-metrics.ts";
import type { MetricsPlace } from "./config.ts";
import { STAY_DOWN } from "./exit-codes.ts";
import { OnDemandReader } from "./on-demand-reader.ts";

/** Shows the metrics of the working processes at `/metrics`, in Prometheus's text format. */
export interface MetricsServer extends AsyncDisposable {
  /** Where it listens: the port that was free, if none was named. */
  readonly port: number;
  /** Shows a process under its place among the supervisor's, until it ends. */
  watch(place: number, child: ChildProcess): void;
}

/**
 * Listens for scrapes.
 *
 * @throws {Error} the address cannot be used; says what to do.
 */
export async function openMetricsServer({ host, port }: MetricsPlace, log: Log): Promise<MetricsServer> {
  const crew = openCrew();
  const respond = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const path = request.url?.split("?")[0];
    if (request.method !== "GET" || path !== "/metrics") return void response.writeHead(404).end();
    const text = await crew.show();
    response.writeHead(200, { "content-type": "text/plain; version=0.0.4; charset=utf-8" }).end(text);
  };
  const server = createServer((request, response) => {
    respond(request, response).catch((error: unknown) => {
      const { name, message } = error instanceof Error ? error : { name: "unknown", message: "" };
      log.warn({ event: "metrics.not_shown", error: name, message }, "metrics not shown");
      response.writeHead(500).end();
    });
  });
  await listen(server, { host, port });
  // No connection that cannot be taken may end the worker.
  server.on("error", ({ name, message }) =>
    log.warn({ event: "metrics.failed", error: name, message }, "metrics failed"),
  );
  const taken = (server.address() as AddressInfo).port; // a TCP server's address
  log.info({ event: "metrics.listening", host, port: taken }, "metrics listening");
  return {
    port: taken,
    watch: crew.watch,
    [Symbol.asyncDispose]: async () => {
      const closed = once(server, "close");
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}

/** The processes by their places, and what they and their supervisor have to show. */
function openCrew() {
  const children = new Map<number, ChildProcess | null>();
  let answered: ReadonlySet<number> = new Set();
  const reader = new OnDemandReader();
  const meter = new MeterProvider({ readers: [reader] }).getMeter("holdpoint.supervisor");
  const exits = meter.createCounter("holdpoint.worker.exits", {
    description: "Ends of the process in this place",
    unit: "{process}",
  });
  meter
    .createObservableGauge("holdpoint.worker.up", {
      description: "1 if the process in this place has answered, 0 if it hangs or there is none",
      unit: "1",
    })
    .addCallback((result) => {
      for (const place of children.keys()) result.observe(answered.has(place) ? 1 : 0, at(place));
    });
  // Without a line about this process as a target, and without the scope's name on each line.
  const serializer = new PrometheusSerializer("", false, undefined, true, true);

  return {
    watch: (place: number, child: ChildProcess): void => {
      children.set(place, child);
      child.once("exit", (code) => {
        exits.add(1, at(place));
        if (code === STAY_DOWN) children.delete(place);
        else children.set(place, null);
      });
    },
    show: async (): Promise<string> => {
      const given = await Promise.all([...children].map(([place, child]) => ask(place, child)));
      const answers = given.filter((each) => each !== null);
      answered = new Set(answers.map(({ place }) => place));
      const own = (await reader.collect()).resourceMetrics;
      const theirs = answers.flatMap(({ place, scopes }) => scopes.map((scope) => inPlace(scope, place)));
      return serializer.serialize({ resource: own.resource, scopeMetrics: [...own.scopeMetrics, ...theirs] });
    },
  };
}

async function ask(place: number, child: ChildProcess | null) {
  const scopes = child === null ? null : await askForMetrics(child);
  return scopes === null ? null : { place, scopes };
}

/** The id of a process changes each time; its place is what a graph goes on with. */
function at(place: number): { readonly "holdpoint.process": number } {
  return { "holdpoint.process": place };
}

function inPlace({ scope, metrics }: ScopeMetrics, place: number): ScopeMetrics {
  return { scope, metrics: metrics.map((metric) => inThisPlace(metric, place)) };
}

function inThisPlace(metric: MetricData, place: number): MetricData {
  const dataPoints = metric.dataPoints.map((point) => ({
    ...point,
    attributes: { ...point.attributes, ...at(place) },
  }));
  return { ...metric, dataPoints } as MetricData; // the same kind of points as before
}

async function listen(server: Server, place: MetricsPlace): Promise<void> {
  server.listen(place);
  try {
    await once(server, "listening");
  } catch (cause) {
    const why = cause instanceof Error && "code" in cause ? String(cause.code) : String(cause);
    const advice = "Set HOLDPOINT_METRICS_PORT to another, or to 0.";
    throw new Error(`Port ${place.port} of ${place.host} cannot be used for metrics (${why}). ${advice}`, { cause });
  }
}
