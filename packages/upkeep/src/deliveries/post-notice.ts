import { createHmac } from "node:crypto";
import { request as httpRequest } from "node:http";
import { request as httpsRequest } from "node:https";
import { DELIVERY_HEADER, type RunNotice, SIGNATURE_HEADER } from "@holdpoint/protocol";
import { type ClaimedDelivery, showId } from "@holdpoint/store";
import { ADDRESS_REFUSED, guardedLookup, namesRefusedAddress } from "./receiver-address.ts";

/** What became of one request. */
export interface Posted {
  /** The status of the answer; null: there was none. */
  readonly httpStatus: number | null;
  /** Null: the receiver has taken it. */
  readonly errorCode: string | null;
}

/**
 * Sends a delivery once. Only a status of 2xx says that it was taken; a redirect is followed nowhere, and of the answer
 * nothing but its status is read. After `timeoutMs` nobody knows whether it arrived.
 */
export async function postNotice(delivery: ClaimedDelivery, timeoutMs: number): Promise<Posted> {
  const url = new URL(delivery.url);
  if (namesRefusedAddress(url)) return { httpStatus: null, errorCode: ADDRESS_REFUSED };
  const body = JSON.stringify(noticeOf(delivery));
  const timeout = AbortSignal.timeout(timeoutMs);
  return new Promise((resolve) => {
    const request = (url.protocol === "https:" ? httpsRequest : httpRequest)(url, {
      method: "POST",
      agent: false,
      lookup: guardedLookup(url),
      signal: timeout,
      headers: headersOf(delivery, body),
    });
    // Later errors are about an answer that nobody reads.
    request.on("error", (error) =>
      resolve({ httpStatus: null, errorCode: timeout.aborted ? "TIMEOUT" : codeOf(error) }),
    );
    request.once("response", (response) => {
      const { statusCode = 0 } = response;
      resolve({ httpStatus: statusCode, errorCode: isTaken(statusCode) ? null : `HTTP_${statusCode}` });
      response.destroy();
    });
    request.end(body);
  });
}

function isTaken(httpStatus: number): boolean {
  return httpStatus >= 200 && httpStatus < 300;
}

function headersOf({ id, secret, nowMs }: ClaimedDelivery, body: string) {
  const time = Math.floor(nowMs / 1_000);
  const signature = createHmac("sha256", secret).update(`${time}.`).update(body).digest("hex");
  return {
    "content-type": "application/json",
    "user-agent": "holdpoint",
    [DELIVERY_HEADER]: showId("delivery", id),
    [SIGNATURE_HEADER]: `t=${time},v1=${signature}`,
  };
}

function noticeOf({ id, notice }: ClaimedDelivery): RunNotice {
  const { runId, parent, atMs, ...told } = notice;
  return {
    deliveryId: showId("delivery", id),
    runId: showId("run", runId),
    parentId: parent === null ? null : showId("run", parent),
    ...told,
    at: new Date(atMs).toISOString(),
  };
}

/** The code alone: what a library says in words may hold the address. */
function codeOf(error: Error): string {
  const code = "code" in error ? String(error.code) : "";
  return /^[A-Z][A-Z0-9_]{1,63}$/.test(code) ? code : "UNKNOWN";
}
