import type { HeartbeatAnswer, HelloAnswer, WorkerTokenAnswer } from "@fairlead/protocol/daemon-link";
import {
  desiredStateRequestSchema,
  heartbeatSchema,
  helloSchema,
  nodeEventsSchema,
  observationSchema,
  workerTokenRequestSchema,
} from "@fairlead/protocol/daemon-link";
import { type SecretAnswer, secretRequestSchema } from "@fairlead/protocol/secrets";
import type { DesiredState } from "@fairlead/protocol/workload";
import { initTRPC, TRPCError, tracked } from "@trpc/server";
import type { NodeRateKind } from "../../telemetry/bounds/node-rate-bounds.ts";
import { type LinkGuard, TooManyCalls } from "./link-guard.ts";
import type { LinkService } from "./link-service.ts";

/** Daemon link: calls of a daemon after its upgrade was accepted. The node comes from the credential, never from a message. */

export interface LinkContext {
  readonly session: ReturnType<LinkService["connect"]>;
  readonly guard: Pick<LinkGuard, "call" | "rejected" | "mayLog">;
}

const t = initTRPC.context<LinkContext>().create({
  errorFormatter: ({ shape, error: { cause } }) =>
    cause instanceof TooManyCalls ? { ...shape, data: { ...shape.data, retryAfterMs: cause.retryAfterMs } } : shape,
});

/** Counts a call before its input is read. */
const call = (kind: NodeRateKind, amountOf: (input: unknown) => number = () => 1) =>
  t.procedure.use(async ({ ctx, next, getRawInput }) => {
    const amount = amountOf(await getRawInput());
    try {
      return await ctx.guard.call(kind, amount, next);
    } catch (error) {
      if (!(error instanceof TooManyCalls)) throw error;
      throw new TRPCError({ code: "TOO_MANY_REQUESTS", message: error.message, cause: error });
    }
  });

const lengthOf = (input: unknown): number => (Array.isArray(input) ? Math.max(1, input.length) : 1);

export const daemonRouter = t.router({
  hello: call("hello")
    .input(helloSchema)
    .mutation(({ ctx, input }): Promise<HelloAnswer> => ctx.session.hello(input)),

  heartbeat: call("heartbeat")
    .input(heartbeatSchema)
    .mutation(({ ctx, input }): Promise<HeartbeatAnswer> => ctx.session.heartbeat(input)),

  observe: call("observe")
    .input(observationSchema)
    .mutation(async ({ ctx, input }): Promise<Record<string, never>> => {
      await ctx.session.observe(input);
      return {};
    }),

  events: call("events", lengthOf)
    .input(nodeEventsSchema)
    .mutation(async ({ ctx, input }): Promise<Record<string, never>> => {
      await ctx.session.events(input);
      return {};
    }),

  goodbye: call("hello").mutation(async ({ ctx }): Promise<Record<string, never>> => {
    await ctx.session.goodbye();
    return {};
  }),

  secret: call("secret")
    .input(secretRequestSchema)
    .query(({ ctx, input }): Promise<SecretAnswer> => ctx.session.secret(input)),

  workerToken: call("workerToken")
    .input(workerTokenRequestSchema)
    .query(({ ctx, input }): Promise<WorkerTokenAnswer> => ctx.session.workerToken(input)),

  /**
   * Sends the current desired state immediately, then every change. Resuming does not need `lastEventId`, because each
   * state is complete.
   */
  desiredState: call("desiredState")
    .input(desiredStateRequestSchema)
    .subscription(async function* ({ ctx, signal }): AsyncGenerator<ReturnType<typeof tracked<DesiredState>>> {
      for await (const state of ctx.session.desiredStates(signal)) {
        yield tracked(`${state.epoch}:${state.generation}`, state);
      }
    }),
});

export type DaemonRouter = typeof daemonRouter;
