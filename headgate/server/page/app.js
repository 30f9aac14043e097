// The page: which view the address names, the sign-in, and the clock.

import { addView } from "./add.js";
import { forgetToken, hasToken, setToken, takeToken } from "./api.js";
import { changesView } from "./changes.js";
import { element, field, setText } from "./dom.js";
import { time } from "./format.js";
import { networkView } from "./network.js";
import { overviewView } from "./overview.js";
import { policyView } from "./policy.js";
import { queriesView } from "./queries.js";
import { queryView } from "./query.js";
import { follow, store, subscribe } from "./store.js";
import { whatIfView } from "./what_if.js";

const root = new URL(document.baseURI).pathname;
const main = document.getElementById("main");
let close = () => {};

const VIEWS = [
  [/^$/, "Overview", overviewView],
  [/^page\/queries$/, "Queries", queriesView],
  [/^page\/queries\/([^/]+)$/, "Query", (goTo, name) => queryView(goTo, decodeURIComponent(name))],
  [/^page\/network$/, "Network", networkView],
  [/^page\/policy$/, "Policy", policyView],
  [/^page\/what-if$/, "What if?", whatIfView],
  [/^page\/changes$/, "Changes", changesView],
  [/^page\/add$/, "Add", addView],
];

/** Go to a view by its path, relative to the root of the page. */
function goTo(path) {
  history.pushState(null, "", root + path);
  show();
  main.focus({ preventScroll: true });
  window.scrollTo(0, 0);
}

function show() {
  close();
  const path = location.pathname.slice(root.length).replace(/\/$/, "");
  const [, title, view] = VIEWS.find(([pattern]) => pattern.test(path)) ?? VIEWS[0];
  const parts = VIEWS.map(([pattern]) => pattern.exec(path)).find(Boolean) ?? [];
  for (const link of document.querySelectorAll("nav a")) {
    const target = new URL(link.href).pathname.slice(root.length);
    const here = target === "" ? path === "" : path.startsWith(target);
    if (here) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  const { node, update } = view(goTo, ...parts.slice(1));
  document.title = `${parts[1] ? decodeURIComponent(parts[1]) : title} · Headgate`;
  main.replaceChildren(node);
  const refresh = () => {
    if (store.state !== null) update(store.state);
  };
  close = subscribe(refresh);
  refresh();
}

/** Show a form that asks for the token. */
function signIn(failed) {
  close();
  close = () => {};
  const token = element("input", { type: "password", autocomplete: "off", required: true });
  const form = element(
    "form",
    { class: "panel narrow" },
    element("h1", {}, "Sign in"),
    failed
      ? element("p", { class: "message bad", role: "alert" }, "The token is missing or wrong. A run has a new one every time.")
      : null,
    element("p", {}, "`headgate open` opens this page signed in. Or paste the token of control.json in the state directory:"),
    field("Token", token),
    element("p", { class: "buttons" }, element("button", { class: "primary" }, "Sign in")),
  );
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    setToken(token.value.trim());
    begin();
  });
  main.replaceChildren(form);
  token.focus();
}

function begin() {
  main.replaceChildren(element("p", { class: "quiet" }, "Connecting …"));
  show();
  follow(() => {
    forgetToken();
    signIn(true);
  });
}

function tick() {
  const badge = document.getElementById("connection");
  setText(badge, store.connection);
  badge.className = `badge ${store.connection === "live" ? "good" : "bad"}`;
  const clock = document.getElementById("clock");
  if (store.reason) setText(clock, store.reason);
  else if (store.state !== null) {
    const now_s = Date.now() / 1000;
    const server = time(now_s - store.shift_s);
    const off = Math.abs(store.shift_s) > 2 ? `, here ${time(now_s)}` : "";
    setText(clock, `server ${server}${off}`);
  }
}

document.addEventListener("click", (event) => {
  const link = event.target.closest?.("a[data-view]");
  if (!link || event.metaKey || event.ctrlKey || event.shiftKey || event.button !== 0) return;
  event.preventDefault();
  goTo(new URL(link.href).pathname.slice(root.length));
});
document.getElementById("skip").addEventListener("click", () => main.focus());
window.addEventListener("popstate", () => hasToken() && show());
window.addEventListener("hashchange", () => {
  takeToken();
  if (hasToken()) location.reload();
});
subscribe(tick);
setInterval(tick, 1000);
takeToken();
if (hasToken()) begin();
else signIn(false);
