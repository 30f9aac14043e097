// What if another policy had been in charge? Replays of this run's recording, and their comparison.

import { ask } from "./api.js";
import { element, messageBox, setText } from "./dom.js";
import { count, number, percent, seconds, some } from "./format.js";

const EVERY_MS = 1000;
const MOST_QUERIES = 8;

export function whatIfView() {
  const message = messageBox();
  const policies = element("input", { value: "", placeholder: "rr, hr, bsd(search=log)", autocomplete: "off", spellcheck: "false", required: true });
  const minutes = element("select", {}, new Option("the last ten minutes", "10"), new Option("the last hour", "60"), new Option("the whole run", ""));
  const begin = element("button", { class: "primary" }, "Replay");
  const cancel = element("button", { type: "button", hidden: true }, "Cancel");
  const bar = element("progress", { max: 1, hidden: true, "aria-label": "Progress of the replay" });
  const state = element("p", { class: "quiet", role: "status" });
  const result = element("section", { class: "panel", hidden: true });
  const suggestions = element("p", { class: "buttons" });
  const form = element(
    "form", { class: "panel" },
    element("div", { class: "columns" }, field("Policies, separated by commas", policies), field("Compare", minutes)),
    suggestions,
    element("p", { class: "buttons" }, begin, cancel), bar, state, message.node,
  );
  let asked_ms = -EVERY_MS;
  let shown = "";
  let busy = false;

  function field(label, control) {
    const id = `what-if-${label.split(/\W/)[0].toLowerCase()}`;
    control.id = id;
    return element("div", { class: "field" }, element("label", { for: id }, label), control);
  }

  /** Split a list at the commas outside of parentheses. */
  function split(text) {
    let depth = 0;
    const parts = [""];
    for (const letter of text) {
      depth += (letter === "(") - (letter === ")");
      if (letter === "," && depth === 0) parts.push("");
      else parts[parts.length - 1] += letter;
    }
    return parts.map((part) => part.trim()).filter(Boolean);
  }

  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    message.say("");
    try {
      await ask("POST", "what-if", { policies: split(policies.value), minutes: minutes.value ? Number(minutes.value) : null });
    } catch (error) {
      message.refuse(error.message);
    }
    look();
  });
  cancel.addEventListener("click", async () => {
    try {
      await ask("DELETE", "what-if");
    } catch (error) {
      message.refuse(error.message);
    }
  });

  function table(heads, rows) {
    return element(
      "div", { class: "scroll tall" },
      element("table", {}, element("thead", {}, element("tr", {}, ...heads.map((text, index) => element("th", { scope: "col", class: index > 1 ? "number" : "" }, text)))),
        element("tbody", {}, ...rows.map((cells) => element("tr", {}, ...cells.map((cell, index) => element("td", { class: index > 1 ? "number" : "" }, cell)))))),
    );
  }

  /** Compare by the simulation of the policy that ran, so that its errors cancel out. */
  function show(answer) {
    const [measured, ran, ...others] = answer.result.reports;
    const change = (now, was) => (now == null || !was ? "–" : `${now < was ? "−" : "+"}${percent(Math.abs(now / was - 1))}`);
    const rows = Object.keys(ran.classes).flatMap((name) =>
      [measured, ran, ...others].map((report, index) => {
        const line = report.classes[name];
        const against = index < 2 ? "" : change(line.mean_s, ran.classes[name].mean_s);
        return [index === 0 ? name : "", index === 1 ? `${report.policy}, simulated` : report.policy, seconds(line.mean_s), seconds(line.p95_s), number(line.slowdown), count(line.results), against];
      }),
    );
    const verdicts = others.map((report) => {
      const gains = Object.keys(ran.queries)
        .filter((name) => ran.queries[name] && report.queries[name] != null)
        .map((name) => [report.queries[name] / ran.queries[name] - 1, name]);
      gains.sort(([a], [b]) => a - b);
      const better = gains.filter(([gain]) => gain < -0.05);
      const worse = gains.filter(([gain]) => gain > 0.05).reverse();
      const list = (queries) => queries.slice(0, MOST_QUERIES).map(([gain, name]) => `${name} ${gain < 0 ? "−" : "+"}${percent(Math.abs(gain))}`).join(", ");
      const mean = change(report.total.mean_s, ran.total.mean_s);
      return element("li", {},
        element("strong", {}, `${report.policy}: ${mean} mean response. `),
        `Sooner for ${some(better.length, "query")}${better.length ? `: ${list(better)}` : ""}. Later for ${some(worse.length, "query")}${worse.length ? `: ${list(worse)}` : ""}.`);
    });
    result.hidden = false;
    result.replaceChildren(
      element("h2", {}, "Which policy would have been better?"),
      ...(answer.result.holds ? [] : [element("p", { class: "message bad" }, "The simulation of the policy that ran is more than 25 % off what was measured: do not trust the others.")]),
      element("ul", {}, ...verdicts),
      table(["Class", "Policy", "Mean", "p95", "Slowdown", "Results", "Mean against the policy that ran"], rows),
    );
  }

  async function look() {
    if (busy) return;
    busy = true;
    asked_ms = performance.now();
    try {
      const answer = await ask("GET", "what-if");
      begin.disabled = answer.running || !answer.recorded;
      cancel.hidden = bar.hidden = !answer.running;
      bar.max = answer.of;
      bar.value = answer.done;
      if (!answer.recorded) setText(state, "This run is not recorded: start it with `headgate run --record`.");
      else if (answer.running) setText(state, answer.current ? `Simulating ${answer.current}: ${answer.done} of ${answer.of} done.` : "Reading the recording.");
      else setText(state, answer.error === "cancelled" ? "The replay was cancelled." : answer.error ? `The replay failed: ${answer.error}` : "");
      const key = JSON.stringify(answer.result);
      if (answer.result && key !== shown) {
        shown = key;
        show(answer);
      }
    } catch (error) {
      setText(state, error.message); // until the next attempt
    }
    busy = false;
  }

  ask("GET", "policies").then((entries) => {
    suggestions.append(
      ...entries.filter((entry) => ["rr", "fcfs", "hr", "hnr", "lsf", "bsd", "cqc", "edf"].includes(entry.name)).map((entry) =>
        element("button", { type: "button", title: entry.use, onclick: () => {
          const names = split(policies.value);
          if (!names.includes(entry.name)) policies.value = [...names, entry.name].join(", ");
        } }, entry.name)),
    );
  }, () => {});

  return {
    node: element(
      "div", {},
      element("h1", {}, "What if?"),
      element("p", { class: "quiet" }, "The recording of this run, simulated under other policies in a process of low priority. The policy that ran is simulated too; comparing simulations lets their errors cancel out."),
      form, result,
    ),
    update() {
      if (performance.now() - asked_ms > EVERY_MS) look();
    },
  };
}
