import { z } from "zod";

const onlyIfSaid = z
  .preprocess((value) => (value === "true" ? true : value === "false" ? false : value), z.boolean())
  .default(false);

/** `provisioning` in the config. */
export const provisioningSettings = z
  .strictObject({
    deadlineMinutes: z
      .number()
      .int()
      .min(1)
      .max(28)
      .default(25)
      .describe(
        "How long a rented machine may take from its order until its daemon has enrolled; then it is removed, and its node is `failed`.",
      ),
    pollSeconds: z
      .number()
      .min(0.05)
      .max(60)
      .default(3)
      .describe("Seconds between two looks at a machine that is starting or going."),
    insecure: onlyIfSaid.describe(
      "Whether rented machines may reach this platform by plain http: whoever is on the way can take them over. For trials alone.",
    ),
    hetzner: z
      .strictObject({
        url: z
          .url({ protocol: /^https?$/, error: "must be an http or https URL" })
          .refine((text) => !text.endsWith("/"), { message: "must not end with a slash" })
          .default("https://api.hetzner.cloud/v1")
          .describe("Where the Hetzner Cloud API answers."),
        image: z
          .string()
          .min(1)
          .default("debian-12")
          .describe("Image of new machines there; cloud-init must be in it."),
      })
      .prefault({}),
    docker: z
      .strictObject({
        enabled: onlyIfSaid.describe(
          "Whether the plan `docker:debian-12` is offered: containers with systemd beside this server, to try all on one machine. " +
            "Whoever may create nodes is root on it then.",
        ),
        socketPath: z.string().min(1).default("/var/run/docker.sock").describe("Docker's socket."),
        image: z
          .string()
          .min(1)
          .default("fairlead/machine:debian-12")
          .describe("Image of these machines, made by `scripts/build-machine-image`."),
      })
      .prefault({}),
  })
  .prefault({});

export type ProvisioningSettings = z.output<typeof provisioningSettings>;

export interface ProvisioningOptions {
  readonly deadlineMs: number;
  readonly pollMs: number;
  readonly insecure: boolean;
}

export function provisioningOptions(settings: ProvisioningSettings): ProvisioningOptions {
  const { deadlineMinutes, pollSeconds, insecure } = settings;
  return { deadlineMs: deadlineMinutes * 60_000, pollMs: pollSeconds * 1000, insecure };
}
