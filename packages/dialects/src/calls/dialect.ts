import type { DIALECTS } from "@fairlead/protocol/providers";

/** A wire format that callers and upstreams use. */
export type Dialect = (typeof DIALECTS)[number];
