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
        "Time limit from ordering a rented machine until its daemon has enrolled. After it, the machine is removed and its node is `failed`.",
      ),
    pollSeconds: z
      .number()
      .min(0.05)
      .max(60)
      .default(3)
      .describe("Seconds between checks of a machine that is starting or being removed."),
    insecure: onlyIfSaid.describe(
      "Allow rented machines to reach this platform over plain HTTP, which allows anyone on the network path to take them over. For trials only.",
    ),
    hetzner: z
      .strictObject({
        url: z
          .url({ protocol: /^https?$/, error: "must be an http or https URL" })
          .refine((text) => !text.endsWith("/"), { message: "must not end with a slash" })
          .default("https://api.hetzner.cloud/v1")
          .describe("Base URL of the Hetzner Cloud API."),
        image: z
          .string()
          .min(1)
          .default("debian-12")
          .describe("Image of new Hetzner machines. It must contain cloud-init."),
      })
      .prefault({}),
    docker: z
      .strictObject({
        enabled: onlyIfSaid.describe(
          "Offer the plan `docker:debian-12`: containers with systemd next to this server, to try everything on one machine. " +
            "Anyone who can create nodes gets root on that machine.",
        ),
        socketPath: z.string().min(1).default("/var/run/docker.sock").describe("Path of the Docker socket."),
        image: z
          .string()
          .min(1)
          .default("fairlead/machine:debian-12")
          .describe("Image of these machines, created by `scripts/build-machine-image`."),
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
