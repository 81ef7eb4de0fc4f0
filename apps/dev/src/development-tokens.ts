/** The people of the development fleet: each has a token that names them, good on this machine only. */
export const TOKEN = {
  alice: "alice-dev-token",
  mona: "mona-dev-token",
  max: "max-dev-token",
  olga: "olga-dev-token",
} as const;

/** As the api reads them: alice asks, mona and max are managers, olga is the operator. */
export const DEVELOPMENT_TOKENS = [
  `${TOKEN.alice}=alice:requester`,
  `${TOKEN.mona}=mona:manager`,
  `${TOKEN.max}=max:manager`,
  `${TOKEN.olga}=olga:operator`,
].join(";");
