/** The two wire formats that callers speak, and upstreams. */
export type Dialect = "chat" | "responses";

/** Where each is spoken, below an upstream's base and, under `/v1`, on our side. */
export const DIALECT_PATH: Readonly<Record<Dialect, string>> = {
  chat: "/chat/completions",
  responses: "/responses",
};
