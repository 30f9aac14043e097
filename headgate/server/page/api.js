// Requests to the run. The token comes in the fragment of the address, which no server gets; it is
// taken out of the address at once and kept for this tab.

const KEY = "headgate-token";

/** A request that the run has refused; `line` is the line of a query's text, if it has one. */
export class Refused extends Error {
  constructor(status, body) {
    super(body.error || `the answer was ${status}`);
    this.status = status;
    this.line = body.line ?? null;
    this.query = body.query ?? null;
  }
}

export function takeToken() {
  const token = new URLSearchParams(location.hash.slice(1)).get("token");
  if (token) {
    history.replaceState(history.state, "", location.pathname + location.search);
    setToken(token);
  }
}

export function setToken(token) {
  sessionStorage.setItem(KEY, token);
}

export function forgetToken() {
  sessionStorage.removeItem(KEY);
}

export function hasToken() {
  return sessionStorage.getItem(KEY) !== null;
}

/** Send a request; return the response, or throw `Refused`. */
export async function request(method, path, body, signal) {
  const headers = { Authorization: `Bearer ${sessionStorage.getItem(KEY) ?? ""}` };
  if (body !== undefined) headers["Content-Type"] = "application/json";
  const response = await fetch(new URL(path, document.baseURI), {
    method, headers, signal, cache: "no-store", credentials: "omit", redirect: "error",
    body: body === undefined ? undefined : JSON.stringify(body),
  });
  if (!response.ok) {
    const text = await response.text();
    let content = {};
    try {
      content = JSON.parse(text);
    } catch {
      // not an answer of a Headgate, but of a proxy
    }
    throw new Refused(response.status, content);
  }
  return response;
}

/** Send a request and return the JSON of its answer. */
export async function ask(method, path, body) {
  return (await request(method, path, body)).json();
}

/** Return the path of a query in the API. */
export function queryPath(name, action = "") {
  return `queries/${encodeURIComponent(name)}${action}`;
}
