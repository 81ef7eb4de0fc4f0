/** The people of the development fleet: each has a token that names them, good on this machine only. */
export const TOKEN = {
  alice: "alice-dev-token",
  mona: "mona-dev-token",
  max: "max-dev-token",
  fay: "fay-dev-token",
  fred: "fred-dev-token",
  olga: "olga-dev-token",
} as const;

/** As the api reads them: alice asks, mona and max are managers, fay and fred are finance, olga is the operator. */
export const DEVELOPMENT_TOKENS = [
  `${TOKEN.alice}=alice:requester`,
  `${TOKEN.mona}=mona:manager`,
  `${TOKEN.max}=max:manager`,
  `${TOKEN.fay}=fay:finance`,
  `${TOKEN.fred}=fred:finance`,
  `${TOKEN.olga}=olga:operator`,
].join(";");
