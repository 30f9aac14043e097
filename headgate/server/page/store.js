// What the run is doing, as far as its stream of updates has told.

import { Refused, request } from "./api.js";

const HISTORY_S = 600;
const EVERY_S = 2;
const MOST_WAIT_MS = 10_000;
const PLAIN = { writable: true, enumerable: true, configurable: true };

/** The last state, null before the first one; and why the run refuses to send more, if it does. */
export const store = { state: null, connection: "connecting", reason: "", history: [], shift_s: 0 };

const listeners = new Set();

/** Call a function after every update; return a function that ends this. */
export function subscribe(listener) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

function publish() {
  for (const listener of [...listeners]) {
    try {
      listener(store);
    } catch (error) {
      console.error(error); // a mistake of one view must not end the connection
    }
  }
}

/** Apply a merge patch (RFC 7386) to an object: null removes a key. */
export function merge(target, patch) {
  for (const [key, value] of Object.entries(patch)) {
    const old = Object.hasOwn(target, key) ? target[key] : undefined;
    if (value === null) delete target[key];
    else if (isObject(value) && isObject(old)) merge(old, value);
    else Object.defineProperty(target, key, { ...PLAIN, value }); // a query may be `__proto__`
  }
  return target;
}

function isObject(value) {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function remember(state) {
  const last = store.history.at(-1);
  if (!state.classes || (last && state.at_s - last.at_s < EVERY_S)) return;
  const classes = {};
  for (const [name, row] of Object.entries(state.classes)) {
    classes[name] = {
      mean: row.mean_response_s, p95: row.p95_response_s, waiting: row.waiting,
      results: row.results_per_s,
    };
  }
  const scores = state.amos?.scores?.map((row) => [row.policy, row.score]);
  store.history.push({ at_s: state.at_s, classes, scores, deciding: state.deciding });
  while (state.at_s - store.history[0].at_s > HISTORY_S) store.history.shift();
}

function take(line) {
  const patch = JSON.parse(line);
  store.state = store.state === null ? patch : merge(store.state, patch);
  store.shift_s = Date.now() / 1000 - store.state.at_s;
  store.connection = "live";
  store.reason = "";
  remember(store.state);
  publish();
}

async function read(signal) {
  const response = await request("GET", "events", undefined, signal);
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  store.state = null;
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const lines = (rest + value).split("\n");
    rest = lines.pop();
    lines.filter(Boolean).forEach(take);
  }
}

/** Read updates for as long as the page lives; `signIn` is called if the token is refused. */
export async function follow(signIn) {
  let wait_ms = 500;
  for (;;) {
    const before = store.state;
    try {
      await read(undefined);
      wait_ms = 500;
    } catch (error) {
      if (error instanceof Refused && error.status === 401) {
        store.connection = "signed out";
        publish();
        return signIn();
      }
      store.reason = error instanceof Refused ? error.message : "";
      wait_ms = Math.min(MOST_WAIT_MS, wait_ms * 2);
    }
    store.state ??= before; // the last state stays in view while the connection is lost
    store.connection = "lost";
    publish();
    await new Promise((resolve) => setTimeout(resolve, wait_ms));
  }
}
