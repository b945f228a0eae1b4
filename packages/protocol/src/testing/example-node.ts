import { z } from "zod";
import { type Node, nodeSchema } from "../resources.ts";

const [example] = z.tuple([nodeSchema]).parse(nodeSchema.meta()?.["examples"]);

/** The node of the API document, for tests that change only the fields they are about. */
export const EXAMPLE_NODE: Node = example;
