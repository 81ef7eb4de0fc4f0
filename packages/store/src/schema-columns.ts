import { pgSchema, timestamp, uuid } from "drizzle-orm/pg-core";

/** The schema of all tables. */
export const holdpoint = pgSchema("holdpoint");
/** A column of instants. */
export const instant = (column: string) => timestamp(column, { withTimezone: true });
/** To whom a row belongs. */
export const tenantId = () => uuid("tenant_id").notNull();
