import { afterAll, beforeAll, expect, test } from "vitest";
import { FakeHetzner } from "../fakes/hetzner/src/fake-hetzner.ts";
import { ensureDemoImage } from "../support/docker.ts";
import { waitFor } from "../support/wait-for.ts";
import { describeOnSystemd } from "./stage/field.ts";
import { RentedMachines } from "./stage/rented-machines.ts";

const UP_MS = 120_000;
const USER_DATA = `#!/bin/sh
echo "$(hostname) ran it at $(systemctl is-system-running), umlaut ü" >>/root/ran
`;

describeOnSystemd("a server of the fake provider", () => {
  const machines = new RentedMachines();
  let fake: FakeHetzner;
  let token: string;

  beforeAll(async () => {
    await ensureDemoImage();
    fake = await FakeHetzner.start({ starter: machines });
    token = fake.addToken(fake.addProject("own"));
  });

  afterAll(() => fake?.close());

  async function call(method: string, path: string, body?: object): Promise<{ status: number; text: string }> {
    const headers = { authorization: `Bearer ${token}` };
    const response = await fetch(`${fake.url}${path}`, {
      method,
      headers,
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    return { status: response.status, text: await response.text() };
  }

  test("is a Debian machine with an address and Docker, runs its user data once, and leaves no trace", async () => {
    const wish = { name: "rented", server_type: "cx22", image: "debian-12", user_data: USER_DATA };
    const id = Number(/"server":\{"id":(\d+)/.exec((await call("POST", "/servers", wish)).text)?.[1]);
    const server = await waitFor("the server to run", UP_MS, async () => {
      const { text } = await call("GET", `/servers/${id}`);
      return text.includes('"status":"running"') && text;
    });
    const [box] = await machines.boxes();
    if (box === undefined) throw new Error("there is no machine");
    const addresses = (await box.run("hostname -I")).split(" ");
    expect(addresses).toContain(/"ipv4":\{"id":\d+,"ip":"([\d.]+)"/.exec(server)?.[1]);
    await box.until("test -s /root/ran");
    await box.reboot();
    expect(await box.run("cat /root/ran")).toBe("rented ran it at running, umlaut ü");
    await call("DELETE", `/servers/${id}`);
    await waitFor("the server to be gone", UP_MS, async () => (await call("GET", `/servers/${id}`)).status === 404);
    await expect(box.run("true")).rejects.toThrow("No such container");
    expect(await machines.boxes()).toEqual([]);
  });
});
