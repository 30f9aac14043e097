// The log of changes: what was changed by whom, where the run differs from its file, and undo.

import { ask } from "./api.js";
import { confirmed, element, messageBox } from "./dom.js";
import { dateTime } from "./format.js";

const EVERY_MS = 4000;
const KINDS = {
  policy: "policy", specification: "what amos is asked for", query: "changed", sql: "text of",
  add: "added", drop: "dropped", "drop stream": "dropped stream", pause: "paused",
  resume: "resumed", restart: "restarted", library: "added to the library of amos:",
};

function value(content) {
  if (content === null || content === undefined) return "none";
  return typeof content === "string" ? content : JSON.stringify(content);
}

/** Return a specification in words; commands send it as text, sliders as rows. */
function asked(content) {
  if (content === null || content === undefined) return "nothing";
  const rows = Array.isArray(content)
    ? content.map((row) => [row.metric, row.quantifier, row.weight])
    : String(content).split(",").map((row) => row.trim().split(":"));
  return rows.map(([metric, quantifier, weight]) => `${quantifier} ${metric} ${Number(weight)}`).join(", ");
}

/** Return in words what a change was. */
export function sentence({ kind, name, before, after }) {
  const what = `${KINDS[kind] ?? kind}${name ? ` ${name}` : ""}`;
  if (kind === "specification") return `${what}: ${asked(before)} → ${asked(after)}`;
  if (kind === "policy" || kind === "sql") return `${what}: ${value(before)} → ${value(after)}`;
  if (kind !== "query") return what;
  const keys = Object.keys(after ?? {});
  return `${what}: ${keys.map((key) => `${key} ${value(before?.[key])} → ${value(after[key])}`).join(", ")}`;
}

/** Return in words what undoing a change does. */
function consequence({ kind, name, before }) {
  if (kind === "add") return `This drops ${name} for good. Results that are there stay.`;
  if (kind === "pause") return `Query ${name} goes on where it stands.`;
  if (kind === "resume") return `Query ${name} is paused again.`;
  if (kind === "sql") return `Query ${name} gets its former text again, as its next version, whose results have a folder of their own.`;
  const earlier = kind === "specification" ? asked(before) : kind === "query"
    ? Object.entries(before ?? {}).map(([key, content]) => `${key} ${value(content)}`).join(", ")
    : value(before);
  return `This puts back what was there before: ${earlier}. No result changes.`;
}

export function changesView() {
  const message = messageBox();
  const differs = element("ul", { class: "problems" });
  const same = element("p", { class: "quiet" });
  const rows = element("tbody", {});
  const head = element("tr", {}, ...["Time", "By", "Change", ""].map((text) => element("th", { scope: "col" }, text)));
  const table = element("table", { class: "changes" }, element("thead", {}, head), rows);
  const log = element("section", { class: "panel scroll tall", hidden: true }, table);
  let asked_ms = -EVERY_MS;
  let shown = "";

  async function undo(change) {
    if (!(await confirmed(`Undo change ${change.number}?`, `${sentence(change)}. ${consequence(change)}`, "Undo"))) return;
    try {
      await ask("POST", `changes/${change.number}/undo`);
      message.say(`Change ${change.number} is undone.`);
    } catch (error) {
      message.refuse(error.message);
    }
    show();
  }

  async function show() {
    asked_ms = performance.now();
    let answer = null;
    try {
      answer = await ask("GET", "changes");
    } catch (error) {
      same.textContent = error.message; // until the next attempt
      shown = "";
      return;
    }
    const key = JSON.stringify(answer);
    if (key === shown) return;
    shown = key;
    same.textContent = answer.differs.length ? "Where the run differs from its pipeline file:" : "The run does what its pipeline file says.";
    differs.replaceChildren(...answer.differs.map((text) => element("li", { class: "warning" }, text)));
    log.hidden = !answer.changes.length;
    rows.replaceChildren(
      ...answer.changes.map((change) => {
        const button = element("button", { type: "button", onclick: () => undo(change), "aria-label": `Undo change ${change.number}` }, "Undo");
        const state = change.undone ? "undone" : change.can_undo ? button : "";
        const text = change.undoes ? `undo of ${change.undoes}: ${sentence(change)}` : sentence(change);
        return element("tr", {}, element("td", {}, dateTime(change.at_s)), element("td", {}, change.origin), element("td", { class: "what" }, text), element("td", {}, state));
      }),
    );
  }

  return {
    node: element(
      "div", {},
      element("h1", {}, "Changes"),
      element("p", { class: "quiet" }, "Every change that was asked for by this page or a command. Changes last, also in later runs, until they are undone."),
      message.node,
      element("section", { class: "panel" }, same, differs),
      log,
    ),
    update() {
      if (performance.now() - asked_ms > EVERY_MS) show();
    },
  };
}
