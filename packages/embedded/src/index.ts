export { EmbeddedServerError, type EmbeddedServerErrorCode } from "./embedded-server-error.ts";
export {
  type PostgresOptions,
  type PostgresServer,
  type PostgresStatus,
  postgresStatus,
  removePostgres,
  startPostgres,
  stopPostgres,
} from "./postgres.ts";
export { findRedis, type RedisOptions, type RedisServer, startRedis } from "./redis.ts";
export { openWorkFolder, type WorkFolder } from "./work-folder.ts";
