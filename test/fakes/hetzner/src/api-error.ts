/** A "no" of the API: the answer's status, and what stands in its body (`error_response` of the provider's document). */
export class ApiError extends Error {
  override readonly name = "ApiError";
  readonly status: number;
  readonly code: string;
  readonly details: object | undefined;

  constructor(status: number, code: string, { message, details }: { message: string; details?: object }) {
    super(message);
    this.status = status;
    this.code = code;
    this.details = details;
  }

  get body(): object {
    const { code, message, details } = this;
    return { error: { code, message, ...(details === undefined ? {} : { details }) } };
  }
}

export function invalidInput(name: string, message: string): ApiError {
  return new ApiError(422, "invalid_input", {
    message: `invalid input in field '${name}': ${message}`,
    details: { fields: [{ name, messages: [message] }] },
  });
}

export function notFound(what: string, id: number | string): ApiError {
  return new ApiError(404, "not_found", { message: `${what} with ID '${id}' not found` });
}

/** What the API says where it served something until it announced the end of that. */
export function removed(): ApiError {
  return new ApiError(410, "deprecated_api_endpoint", { message: "the API endpoint functionality was removed" });
}

/** As seen in hetznercloud/terraform-provider-hcloud#407 and #1147. */
export function noCapacity(): ApiError {
  return new ApiError(412, "resource_unavailable", {
    message: "we are unable to provision servers for this location, try with a different location or try later",
  });
}
