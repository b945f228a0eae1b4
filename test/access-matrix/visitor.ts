import { FORM_TOKEN } from "../../packages/control-plane/src/people/pages/html/fields.ts";

export interface PageAnswer {
  readonly status: number;
  readonly location: string;
  readonly text: string;
}

/** A person's browser as far as pages go: it keeps cookies, and sends forms with their token. */
export class Visitor {
  readonly #url: string;
  readonly #cookies = new Map<string, string>();

  constructor(url: string) {
    this.#url = url;
  }

  /** The header `Cookie`. */
  get cookie(): string {
    return [...this.#cookies].map((pair) => pair.join("=")).join("; ");
  }

  async open(path: string): Promise<PageAnswer> {
    return this.#send(path, {});
  }

  /** What a form on this page carries, unseen. */
  async formToken(page: string): Promise<string> {
    const { text, status } = await this.open(page);
    const token = new RegExp(`name="${FORM_TOKEN}" value="([^"]+)"`).exec(text)?.[1];
    if (token === undefined) throw new Error(`${page} answered ${status}, and there is no form`);
    return token;
  }

  /** Sends the form of a page, to the page itself or where the form leads. */
  async submit(page: string, fields: Readonly<Record<string, string>>, action = page): Promise<PageAnswer> {
    const token = await this.formToken(page);
    const body = new URLSearchParams({ ...fields, [FORM_TOKEN]: token });
    const answer = await this.#send(action, { method: "POST", body });
    if (answer.status >= 400) throw new Error(`${action} answered ${answer.status}: ${answer.text}`);
    return answer;
  }

  async #send(path: string, init: RequestInit): Promise<PageAnswer> {
    const headers = { cookie: this.cookie, "sec-fetch-site": "same-origin" };
    const response = await fetch(`${this.#url}${path}`, { ...init, headers, redirect: "manual" });
    for (const set of response.headers.getSetCookie()) {
      const [name = "", value = ""] = set.split(";", 1)[0]?.split("=", 2) ?? [];
      if (value === "") this.#cookies.delete(name);
      else this.#cookies.set(name, value);
    }
    return {
      status: response.status,
      location: response.headers.get("location") ?? "",
      text: await response.text(),
    };
  }
}
