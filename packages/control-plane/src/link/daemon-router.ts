import type { HeartbeatAnswer, HelloAnswer, WorkerTokenAnswer } from "@fairlead/protocol/daemon-link";
import {
  heartbeatSchema,
  helloSchema,
  nodeEventsSchema,
  observationSchema,
  workerTokenRequestSchema,
} from "@fairlead/protocol/daemon-link";
import { type SecretAnswer, secretRequestSchema } from "@fairlead/protocol/secrets";
import type { DesiredState } from "@fairlead/protocol/workload";
import { initTRPC, tracked } from "@trpc/server";
import { z } from "zod";
import type { LinkService } from "./link-service.ts";

/** The daemon link: what a daemon may call once its upgrade has been accepted. The node comes from the credential, never from a message. */

export interface LinkContext {
  readonly session: ReturnType<LinkService["connect"]>;
}

const t = initTRPC.context<LinkContext>().create();

export const daemonRouter = t.router({
  hello: t.procedure.input(helloSchema).mutation(({ ctx, input }): Promise<HelloAnswer> => ctx.session.hello(input)),

  heartbeat: t.procedure
    .input(heartbeatSchema)
    .mutation(({ ctx, input }): Promise<HeartbeatAnswer> => ctx.session.heartbeat(input)),

  observe: t.procedure.input(observationSchema).mutation(async ({ ctx, input }): Promise<Record<string, never>> => {
    await ctx.session.observe(input);
    return {};
  }),

  events: t.procedure.input(nodeEventsSchema).mutation(async ({ ctx, input }): Promise<Record<string, never>> => {
    await ctx.session.events(input);
    return {};
  }),

  secret: t.procedure
    .input(secretRequestSchema)
    .query(({ ctx, input }): Promise<SecretAnswer> => ctx.session.secret(input)),

  workerToken: t.procedure
    .input(workerTokenRequestSchema)
    .query(({ ctx, input }): Promise<WorkerTokenAnswer> => ctx.session.workerToken(input)),

  /** The current desired state at once, then every change. `lastEventId` is not needed to resume: the state is whole. */
  desiredState: t.procedure.input(z.object({ lastEventId: z.string().nullish() })).subscription(async function* ({
    ctx,
    signal,
  }): AsyncGenerator<ReturnType<typeof tracked<DesiredState>>> {
    for await (const state of ctx.session.desiredStates(signal)) {
      yield tracked(`${state.epoch}:${state.generation}`, state);
    }
  }),
});

export type DaemonRouter = typeof daemonRouter;
