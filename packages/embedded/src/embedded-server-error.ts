/** A local server could not be started, found or stopped. The message says what to do; `code` is stable. */
export class EmbeddedServerError extends Error {
  readonly code: EmbeddedServerErrorCode;

  constructor(code: EmbeddedServerErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "EmbeddedServerError";
    this.code = code;
  }
}

export type EmbeddedServerErrorCode =
  | "UNSUPPORTED_PLATFORM"
  | "NO_SERVER_USER"
  | "UNSAFE_FOLDER"
  | "INITDB_FAILED"
  | "START_FAILED"
  | "STOP_FAILED"
  | "OTHER_PORT"
  | "REDIS_ABSENT";
