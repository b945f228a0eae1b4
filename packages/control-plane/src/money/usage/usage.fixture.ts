import type { UsageRecord } from "./usage.ts";

/** The record of a call that went well. */
export function usageRecord(id: string, changes: Partial<UsageRecord> = {}): UsageRecord {
  return {
    id,
    projectId: "prj_1",
    requestId: `req_${id}`,
    at: Date.UTC(2026, 0, 1, 10, 30),
    keyId: "key_1",
    userId: "usr_1",
    agentId: null,
    model: "attic/small",
    upstream: "node:attic",
    dialect: "chat",
    stream: true,
    outcome: "ok",
    status: 200,
    inputTokens: 10,
    cachedInputTokens: 4,
    outputTokens: 5,
    reasoningTokens: 2,
    estimated: false,
    cost: 1234,
    attempts: 1,
    overheadMs: 0.412,
    firstTokenMs: 96,
    durationMs: 1840,
    ...changes,
  };
}
