import * as fc from "fast-check";
import { TEST_SEED } from "./seed.ts";

/** Property tests use the seed of the run. A property that states its own keeps it. */
fc.configureGlobal({ ...fc.readConfigureGlobal(), seed: TEST_SEED });
