/** Runs work that outlives the call it is started from.
 *
 * The host carries its plugins' state along every asynchronous path. After its configuration was loaded anew, a
 * service's path still carries what was there while loading, and the host then refuses its own model ("Plugin inventory
 * has retired"). It keeps a path that carries nothing, under this name of the process; where a host has none, the work
 * runs on the path of its caller. */
import { AsyncResource } from "node:async_hooks";
const EMPTY_PATH = Symbol.for("openclaw.detachedAsyncContext");
export function detached(run) {
    const path = globalThis[EMPTY_PATH];
    return path instanceof AsyncResource ? path.runInAsyncScope(run) : run();
}
