/** A browser as far as pages need one: cookies, forms, and redirects that it follows. No scripts, as the pages want it. */

export interface Shown {
  readonly status: number;
  /** Path and query. */
  readonly path: string;
  readonly title: string;
  readonly text: string;
  readonly headers: Headers;
}

interface FoundForm {
  readonly action: string;
  readonly hidden: Readonly<Record<string, string>>;
}

const MAX_REDIRECTS = 5;

export class FakeBrowser {
  readonly cookies = new Map<string, string>();
  readonly #base: string;
  shown: Shown = { status: 0, path: "", title: "", text: "", headers: new Headers() };

  constructor(base: string) {
    this.#base = base;
  }

  async open(path: string): Promise<Shown> {
    return this.#go(path, { method: "GET" });
  }

  /** Fills the form of the shown page that goes to `action`, and sends it. @throws where the page has no such form */
  async submit(action: string, fields: Readonly<Record<string, string>> = {}): Promise<Shown> {
    const { hidden } = this.form(action);
    return this.post(action, { ...hidden, ...fields });
  }

  /** Sends a form that may stand on no page. */
  async post(
    path: string,
    fields: Readonly<Record<string, string>>,
    headers: Readonly<Record<string, string>> = {},
  ): Promise<Shown> {
    const from = { origin: new URL(this.#base).origin, "sec-fetch-site": "same-origin" };
    const body = new URLSearchParams(fields);
    return this.#go(path, { method: "POST", body, headers: { ...from, ...headers } });
  }

  form(action: string): FoundForm {
    const found = this.forms().find((form) => form.action === action);
    if (found) return found;
    throw new Error(`${this.shown.path} (${this.shown.status}) has no form to ${action}:\n${this.shown.text}`);
  }

  forms(): FoundForm[] {
    return Array.from(this.shown.text.matchAll(/<form\b([^>]*)>(.*?)<\/form>/gs), ([, head = "", content = ""]) => ({
      action: attribute(head, "action") ?? "",
      hidden: Object.fromEntries(
        Array.from(content.matchAll(/<input\b(?![^>]*type="checkbox")[^>]*>/g), ([input]) => [
          attribute(input, "name") ?? "",
          attribute(input, "value"),
        ]).filter((pair): pair is [string, string] => pair[0] !== "" && pair[1] !== undefined),
      ),
    }));
  }

  async #go(path: string, init: RequestInit): Promise<Shown> {
    let at = new URL(path, this.#base);
    let response = await this.#fetch(at, init);
    for (let i = 0; i < MAX_REDIRECTS && [302, 303].includes(response.status); i++) {
      at = new URL(response.headers.get("location") ?? "", at);
      response = await this.#fetch(at, { method: "GET" });
    }
    const text = await response.text();
    const title = unescape(/<title>(.*?) · Fairlead<\/title>/.exec(text)?.[1] ?? "");
    this.shown = { status: response.status, path: at.pathname + at.search, title, text, headers: response.headers };
    return this.shown;
  }

  async #fetch(url: URL, init: RequestInit): Promise<Response> {
    const cookie = Array.from(this.cookies, ([name, value]) => `${name}=${value}`).join("; ");
    const headers = new Headers(init.headers);
    if (cookie !== "") headers.set("cookie", cookie);
    const response = await fetch(url, { ...init, headers, redirect: "manual" });
    for (const line of response.headers.getSetCookie()) this.#keep(line);
    return response;
  }

  #keep(line: string): void {
    const [pair = "", ...attributes] = line.split("; ");
    const at = pair.indexOf("=");
    const [name, value] = [pair.slice(0, at), pair.slice(at + 1)];
    if (attributes.some((text) => /^max-age=0$/i.test(text))) this.cookies.delete(name);
    else this.cookies.set(name, value);
  }
}

function attribute(tag: string, name: string): string | undefined {
  const value = new RegExp(`\\b${name}="([^"]*)"`).exec(tag)?.[1];
  return value === undefined ? undefined : unescape(value);
}

function unescape(text: string): string {
  return text
    .replaceAll("&lt;", "<")
    .replaceAll("&gt;", ">")
    .replaceAll("&quot;", '"')
    .replaceAll("&#39;", "'")
    .replaceAll("&amp;", "&");
}
