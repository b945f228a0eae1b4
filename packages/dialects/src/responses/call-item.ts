import type { ResponseCustomToolCallItem, ResponseFunctionToolCall } from "openai/resources/responses/responses";
import { CustomToolInput } from "../chat/custom-tool-input.ts";
import type { ToolOrigin } from "../chat/tool-names.ts";
import type { FinalStatus, OutputItem, Place } from "./output-item.ts";

/** A call of a tool whose arguments arrive in pieces. */
export interface CallItem extends OutputItem {
  add(args: string): void;
}

export class FunctionCallItem implements CallItem {
  readonly #place: Place;
  readonly #callId: string;
  readonly #origin: ToolOrigin;
  #arguments = "";
  #status: FinalStatus | null = null;

  constructor(place: Place, callId: string, origin: ToolOrigin) {
    this.#place = place;
    this.#callId = callId;
    this.#origin = origin;
    place.emit({ type: "response.output_item.added", output_index: place.index, item: this.#as("in_progress") });
  }

  add(delta: string): void {
    if (delta === "") return;
    this.#arguments += delta;
    const { id, index, emit } = this.#place;
    emit({ type: "response.function_call_arguments.delta", item_id: id, output_index: index, delta });
  }

  close(status: FinalStatus): void {
    if (this.#status) return;
    // Every client parses it; engines send nothing where a function takes nothing.
    if (status === "completed" && this.#arguments === "") this.add("{}");
    this.#status = status;
    const { id, index, emit } = this.#place;
    emit({
      type: "response.function_call_arguments.done",
      item_id: id,
      output_index: index,
      name: this.#origin.name,
      arguments: this.#arguments,
    });
    emit({ type: "response.output_item.done", output_index: index, item: this.view(status) });
  }

  view(status: FinalStatus): ResponseFunctionToolCall {
    return this.#as(this.#status ?? status);
  }

  #as(status: FinalStatus | "in_progress"): ResponseFunctionToolCall {
    const { name, namespace } = this.#origin;
    return {
      type: "function_call",
      id: this.#place.id,
      call_id: this.#callId,
      name,
      ...(namespace === null ? {} : { namespace }),
      arguments: this.#arguments,
      status,
    };
  }
}

/** A call of a free-form tool, which the upstream knows as a function with one text. */
export class CustomCallItem implements CallItem {
  readonly #place: Place;
  readonly #callId: string;
  readonly #origin: ToolOrigin;
  readonly #reader = new CustomToolInput();
  #input = "";
  #status: FinalStatus | null = null;

  constructor(place: Place, callId: string, origin: ToolOrigin) {
    this.#place = place;
    this.#callId = callId;
    this.#origin = origin;
    place.emit({ type: "response.output_item.added", output_index: place.index, item: this.#as("in_progress") });
  }

  add(args: string): void {
    this.#give(this.#reader.push(args));
  }

  close(status: FinalStatus): void {
    if (this.#status) return;
    this.#give(this.#reader.end());
    this.#status = status;
    const { id, index, emit } = this.#place;
    emit({
      type: "response.custom_tool_call_input.done",
      item_id: id,
      output_index: index,
      input: this.#input,
    });
    emit({ type: "response.output_item.done", output_index: index, item: this.view(status) });
  }

  view(status: FinalStatus): ResponseCustomToolCallItem {
    return this.#as(this.#status ?? status);
  }

  #give(delta: string): void {
    if (delta === "") return;
    this.#input += delta;
    const { id, index, emit } = this.#place;
    emit({ type: "response.custom_tool_call_input.delta", item_id: id, output_index: index, delta });
  }

  #as(status: FinalStatus | "in_progress"): ResponseCustomToolCallItem {
    const { name, namespace } = this.#origin;
    return {
      type: "custom_tool_call",
      id: this.#place.id,
      call_id: this.#callId,
      name,
      ...(namespace === null ? {} : { namespace }),
      input: this.#input,
      status,
    };
  }
}
