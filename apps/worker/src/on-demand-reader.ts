import { MetricReader } from "@opentelemetry/sdk-metrics";

/** Collects when it is asked, and holds nothing that has to be flushed or closed. */
export class OnDemandReader extends MetricReader {
  protected override onForceFlush = async (): Promise<void> => undefined;
  protected override onShutdown = async (): Promise<void> => undefined;
}
