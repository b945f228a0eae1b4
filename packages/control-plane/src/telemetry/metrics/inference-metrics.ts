import type { InferenceHost } from "@fairlead/inference/host/inference-host";
import type { Registry } from "prom-client";
import { counter, distribution, gauge, type Sample } from "./metric-kinds.ts";

export interface InferenceMetricSources {
  readonly inference: Pick<InferenceHost, "load" | "counters" | "places">;
  readonly limiter: { readonly refusals: ReadonlyMap<string, number> };
  readonly usageRecorder: { readonly dropped: number };
  readonly billing: { readonly load: { readonly holds: number; readonly held: number } };
}

/** Metrics of inference calls. `upstream`: see `InferenceCounters`. */
export function addInference(registry: Registry, sources: InferenceMetricSources): void {
  addCalls(registry, sources);
  addTimes(registry, sources);
  addUpstreams(registry, sources);
  const { inference, limiter, billing, usageRecorder } = sources;
  counter(registry, "fairlead_rate_limit_refusals_total", {
    help: "Calls rejected by a limit of their key, agent or project, by limit: requests, tokens or parallel.",
    labelNames: ["of", "limit"],
    read: () =>
      Array.from(limiter.refusals, ([name, count]): Sample => {
        const [of = "", limit = ""] = name.split(" ");
        return [{ of, limit }, count];
      }),
  });

  gauge(registry, "fairlead_billing_holds_open", {
    help: "Calls with reserved balance.",
    read: () => [[{}, billing.load.holds]],
  });

  gauge(registry, "fairlead_billing_held_dollars", {
    help: "Balance reserved by running calls, in US dollars.",
    read: () => [[{}, billing.load.held / 1e9]],
  });

  counter(registry, "fairlead_usage_records_dropped_total", {
    help: "Calls whose usage was lost because the store was unavailable for too long. Balances are not affected.",
    read: () => [[{}, usageRecorder.dropped]],
  });

  gauge(registry, "fairlead_inference_calls_in_flight", {
    help: "Running calls.",
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
      "Calls by outcome (`ok`, `rejected` by the upstream, `client_left`, `replayed`, or an error code), dialect, and the upstream " +
      "that was called last: the name of a platform provider, otherwise `node` or `provider`.",
    labelNames: ["outcome", "dialect", "upstream"],
    read: () => Array.from(counters.calls(), ({ count, ...labels }): Sample => [labels, count]),
  });

  counter(registry, "fairlead_inference_tokens_total", {
    help: "Tokens by kind. `cached_input` is part of `input`, `reasoning` part of `output`.",
    labelNames: ["kind", "upstream"],
    read: () => Array.from(counters.tokens(), ({ count, ...labels }): Sample => [labels, count]),
  });

  counter(registry, "fairlead_inference_relayed_bytes_total", {
    help: "Bytes sent from upstreams to clients.",
    read: () => [[{}, counters.relayedBytes]],
  });
}

function addTimes(registry: Registry, { inference: { counters } }: InferenceMetricSources): void {
  const times = [
    [
      "overhead",
      counters.overhead,
      "Time that this host spent on a call up to the response headers, excluding waits for the request body and for upstreams.",
    ],
    ["first_byte", counters.firstByte, "From sending a call to the upstream's response headers."],
    ["first_token", counters.firstToken, "From the start of a call to the first token of its stream."],
    ["call", counters.duration, "From the start of a call to its end."],
  ] as const;
  for (const [name, values, help] of times) {
    distribution(registry, `fairlead_inference_${name}_seconds`, { help, read: () => [{ labels: {}, values }] });
  }
}

function addUpstreams(registry: Registry, { inference: { counters, places } }: InferenceMetricSources): void {
  counter(registry, "fairlead_inference_retries_total", {
    help: "Retries, by the result of the previous attempt: `not_reached`, `busy`, `failed` or `broken`.",
    labelNames: ["after"],
    read: () => Array.from(counters.retries, ([after, count]): Sample => [{ after }, count]),
  });

  counter(registry, "fairlead_upstream_failures_total", {
    help:
      "Failed attempts, by upstream (as in `fairlead_inference_calls_total`) and reason: `not_reached`, `rate_limited`, `overloaded`, " +
      "`timeout`, `credentials` or `failed`.",
    labelNames: ["upstream", "reason"],
    read: () => Array.from(counters.failures(), ({ count, ...labels }): Sample => [labels, count]),
  });

  gauge(registry, "fairlead_upstream_breakers", {
    help: "Upstreams that receive no calls after failures (`open`), or one call at a time (`half_open`). Counted per project.",
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
