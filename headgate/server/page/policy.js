// What the system optimises for: the policy with its parameters, and what `amos` is asked for.

import { amosPanel } from "./amos.js";
import { ask } from "./api.js";
import { confirmed, element, field, messageBox, setText } from "./dom.js";

const EVERY_MS = 5000;

/** Return the name and the parameters of a policy as text, such as `bsd(search=log,clusters=12)`. */
export function spelled(text) {
  const [, name, , inside = ""] = /^([^(]*)(\((.*)\))?$/.exec(text) ?? [null, text, null, ""];
  const parameters = {};
  let depth = 0;
  let begin = 0;
  for (let place = 0; place <= inside.length; place += 1) {
    const letter = inside[place] ?? ",";
    depth += (letter === "(") - (letter === ")");
    if (letter !== "," || depth > 0) continue;
    const [key, ...value] = inside.slice(begin, place).split("=");
    if (key) parameters[key] = value.join("=");
    begin = place + 1;
  }
  return [name, parameters];
}

export function policyView() {
  const current = element("strong", {});
  const deciding = element("span", { class: "quiet" });
  const message = messageBox();
  const select = element("select", {});
  const about = element("dl", { class: "facts" });
  const parameters = element("div", { class: "parameters" });
  const wanted = element("output", { class: "spelled" });
  const panel = amosPanel(message);
  const form = element(
    "form",
    { class: "panel" },
    element("h2", {}, "Choose a policy"),
    field("Policy", select),
    about, parameters,
    element("p", {}, "As text: ", wanted),
    element("p", { class: "buttons" }, element("button", { class: "primary" }, "Put in charge")),
  );
  let entries = [];
  let before = "";
  let asked_ms = -EVERY_MS;

  function text() {
    const changed = [...parameters.querySelectorAll("input")]
      .filter((input) => input.value.trim() !== input.dataset.usual)
      .map((input) => `${input.name}=${input.value.trim()}`);
    return select.value + (changed.length ? `(${changed.join(",")})` : "");
  }

  function choose() {
    const entry = entries.find((other) => other.name === select.value);
    if (!entry) return;
    const rows = [["Objective", entry.objective], ["Use it when", entry.use], ["Not when", entry.avoid], ["Starves", entry.starves ? "it may: a query can wait for ever" : "nobody"], ["Paper", entry.paper]];
    about.replaceChildren(...rows.filter(([, value]) => value).flatMap(([label, value]) => [element("dt", {}, label), element("dd", {}, value)]));
    const [name, values] = spelled(before);
    parameters.replaceChildren(
      ...Object.entries(entry.parameters).map(([key, usual]) => {
        const value = name === entry.name && Object.hasOwn(values, key) ? values[key] : usual;
        const input = element("input", { name: key, value, "data-usual": usual, autocomplete: "off", id: `parameter-${key}` });
        return field(key, input);
      }),
    );
    setText(wanted, text());
  }

  select.addEventListener("change", choose);
  form.addEventListener("input", () => setText(wanted, text()));
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const policy = text();
    const sure = await confirmed(
      `Put ${policy} in charge?`,
      `It decides from the next call on, instead of ${before}. Nothing is lost, nothing runs twice, and no result changes. It stays in charge in later runs, until it is undone under Changes.`,
      "Put in charge",
    );
    if (!sure) return;
    try {
      const answer = await ask("PUT", "policy", { policy });
      message.say(`In charge: ${answer.policy}.`);
    } catch (error) {
      message.refuse(error.message);
    }
  });

  async function load() {
    asked_ms = performance.now();
    try {
      entries = await ask("GET", "policies");
      select.replaceChildren(...entries.map((entry) => new Option(`${entry.name}: ${entry.objective}`, entry.name)));
      select.value = before.split("(")[0] || entries[0].name;
      choose();
    } catch (error) {
      setText(wanted, error.message); // until the next attempt
    }
  }

  return {
    node: element(
      "div",
      {},
      element("h1", {}, "Policy"),
      element("p", {}, "In charge: ", current, deciding),
      message.node, panel.node, form,
    ),
    update(state) {
      if (!entries.length && performance.now() - asked_ms > EVERY_MS) load();
      const name = state.policy.split(", ")[0];
      const changed = name !== before;
      before = name;
      if (changed && entries.length) {
        select.value = name.split("(")[0];
        choose();
      }
      setText(current, name);
      setText(deciding, state.policy.slice(name.length));
      panel.update(state.amos ?? null);
    },
  };
}
