import type { Registry } from "prom-client";
import type { InferenceHost } from "../inference/inference-host.ts";
import { counter, distribution, gauge, type Sample } from "./metric-kinds.ts";

export interface InferenceMetricSources {
  readonly inference: Pick<InferenceHost, "load" | "counters" | "places">;
  readonly limiter: { readonly refusals: ReadonlyMap<string, number> };
  readonly usageRecorder: { readonly dropped: number };
  readonly billing: { readonly load: { readonly holds: number; readonly held: number } };
}

/** The figures of the inference host's calls. `upstream`: see `InferenceCounters`. */
export function addInference(registry: Registry, sources: InferenceMetricSources): void {
  addCalls(registry, sources);
  addTimes(registry, sources);
  addUpstreams(registry, sources);
  const { inference, limiter, billing, usageRecorder } = sources;
  counter(registry, "fairlead_rate_limit_refusals_total", {
    help: "Calls that a limit of their key, agent or project refused, by the limit: requests, tokens or parallel.",
    labelNames: ["of", "limit"],
    read: () =>
      Array.from(limiter.refusals, ([name, count]): Sample => {
        const [of = "", limit = ""] = name.split(" ");
        return [{ of, limit }, count];
      }),
  });

  gauge(registry, "fairlead_billing_holds_open", {
    help: "Calls for which money is set aside.",
    read: () => [[{}, billing.load.holds]],
  });

  gauge(registry, "fairlead_billing_held_dollars", {
    help: "Money that is set aside for calls that run, US dollars.",
    read: () => [[{}, billing.load.held / 1e9]],
  });

  counter(registry, "fairlead_usage_records_dropped_total", {
    help: "Calls whose usage is lost, since the store was away for too long. Money is not concerned.",
    read: () => [[{}, usageRecorder.dropped]],
  });

  gauge(registry, "fairlead_inference_calls_in_flight", {
    help: "Calls that run.",
    read: () => [[{}, inference.load.callsInFlight]],
  });

  gauge(registry, "fairlead_inference_buffered_bytes", {
    help: "Request bodies in memory.",
    read: () => [[{}, inference.load.bufferedBytes]],
  });
}

function addCalls(registry: Registry, { inference: { counters } }: InferenceMetricSources): void {
  counter(registry, "fairlead_inference_calls_total", {
    help:
      "Calls by how they ended (`ok`, `rejected` by the upstream, `client_left`, `replayed`, or an error code), dialect, and the upstream " +
      "that was asked last: a provider of the platform by name, else `node` or `provider`.",
    labelNames: ["outcome", "dialect", "upstream"],
    read: () => Array.from(counters.calls(), ({ count, ...labels }): Sample => [labels, count]),
  });

  counter(registry, "fairlead_inference_tokens_total", {
    help: "Tokens by kind. `cached_input` is a part of `input`, `reasoning` one of `output`.",
    labelNames: ["kind", "upstream"],
    read: () => Array.from(counters.tokens(), ({ count, ...labels }): Sample => [labels, count]),
  });

  counter(registry, "fairlead_inference_relayed_bytes_total", {
    help: "Bytes from upstreams to callers.",
    read: () => [[{}, counters.relayedBytes]],
  });
}

function addTimes(registry: Registry, { inference: { counters } }: InferenceMetricSources): void {
  const times = [
    [
      "overhead",
      counters.overhead,
      "What a call cost on this host until its answer's head, without waiting for the body and for upstreams.",
    ],
    ["first_byte", counters.firstByte, "From the dispatch of a call to the head of the upstream's answer."],
    ["first_token", counters.firstToken, "From a call's beginning to the first token of its stream."],
    ["call", counters.duration, "From a call's beginning to its end."],
  ] as const;
  for (const [name, values, help] of times) {
    distribution(registry, `fairlead_inference_${name}_seconds`, { help, read: () => [{ labels: {}, values }] });
  }
}

function addUpstreams(registry: Registry, { inference: { counters, places } }: InferenceMetricSources): void {
  counter(registry, "fairlead_inference_retries_total", {
    help: "Further attempts, by what the one before brought: `not_reached`, `busy`, `failed` or `broken`.",
    labelNames: ["after"],
    read: () => Array.from(counters.retries, ([after, count]): Sample => [{ after }, count]),
  });

  gauge(registry, "fairlead_upstream_breakers", {
    help: "Upstreams that no call is sent to since they failed (`open`), or one at a time (`half_open`); each project's are counted.",
    labelNames: ["upstream", "state"],
    read: () => {
      const sums = new Map<string, Sample>();
      for (const { upstreamId, state } of places.breakers()) {
        const labels = { upstream: counters.labelOf(upstreamId), state };
        const name = `${labels.upstream} ${state}`;
        sums.set(name, [labels, (sums.get(name)?.[1] ?? 0) + 1]);
      }
      return [...sums.values()];
    },
  });
}
