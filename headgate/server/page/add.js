// Add a query: its text is checked as by `headgate check`, and a refusal is shown at its line.

import { ask } from "./api.js";
import { confirmed, element, field, messageBox } from "./dom.js";

/** Return what shows a refusal below the line of the text that it names. */
export function refusals(sql, message) {
  const listing = element("ol", { class: "listing", hidden: true, "aria-label": "The text, with the refusal at its line" });
  return {
    node: listing,
    refuse(error) {
      listing.hidden = error.line == null;
      if (error.line == null) {
        message.refuse(error.message);
        return;
      }
      message.refuse("");
      const lines = sql.value.split("\n");
      listing.replaceChildren(
        ...lines.map((text, index) =>
          index + 1 === error.line
            ? element("li", { class: "refused" }, element("code", {}, text || " "), element("p", { class: "message bad", role: "alert" }, error.message))
            : element("li", {}, element("code", {}, text || " ")),
        ),
      );
      sql.setAttribute("aria-invalid", "true");
    },
    clear() {
      listing.hidden = true;
      sql.removeAttribute("aria-invalid");
      message.say("");
    },
  };
}

export function addView(goTo) {
  const message = messageBox();
  const name = element("input", { required: true, pattern: "[A-Za-z][A-Za-z0-9_]{0,99}", title: "letters, digits and _, beginning with a letter", autocomplete: "off", spellcheck: "false" });
  const queryClass = element("select", {});
  const sql = element("textarea", { rows: 8, required: true, spellcheck: "false", wrap: "off", placeholder: "SELECT location, temperature FROM sensors WHERE temperature > 38" });
  const weight = element("input", { type: "number", min: 0, step: "any", value: 1 });
  const deadline = element("input", { type: "number", min: 0, step: "any", placeholder: "none" });
  const from = element("select", {}, new Option("the oldest tuple in the log", "oldest"), new Option("now", "now"));
  const { node: listing, refuse, clear } = refusals(sql, message);
  const streams = element("p", { class: "quiet" });
  const check = element("button", { type: "button" }, "Check");
  const form = element(
    "form",
    { class: "panel" },
    element("div", { class: "columns" }, field("Name", name), field("Class", queryClass)),
    field("SQL", sql), streams, listing, message.node,
    element("div", { class: "columns three" }, field("Weight", weight), field("Deadline in seconds", deadline), field("Begins with", from)),
    element("p", { class: "buttons" }, check, element("button", { class: "primary" }, "Add")),
    element("small", {}, "Its results become Parquet files in the state directory. Later runs have it too, until it is dropped."),
  );

  function fragment() {
    const query = { class: queryClass.value, sql: sql.value, weight: Number(weight.value || 1), from: from.value };
    if (deadline.value !== "") query.deadline_s = Number(deadline.value);
    return { queries: { [name.value]: query } };
  }

  async function attempt(action, button) {
    clear();
    if (!form.reportValidity()) return;
    button.disabled = true;
    try {
      await action();
    } catch (error) {
      refuse(error);
    } finally {
      button.disabled = false;
    }
  }

  check.addEventListener("click", () =>
    attempt(async () => {
      await ask("POST", "check?where=page", fragment());
      message.say("The query can run.");
    }, check),
  );
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    attempt(async () => {
      await ask("POST", "check?where=page", fragment());
      const begin = from.value === "now" ? "tuples that arrive from now on" : "the oldest tuple in the log";
      if (!(await confirmed(`Add ${name.value}?`, `It runs in class ${queryClass.value}, in this run and later ones, and begins with ${begin}.`, "Add"))) return;
      await ask("POST", "add?where=page", fragment());
      goTo(`page/queries/${encodeURIComponent(name.value)}`);
    }, event.submitter ?? check);
  });

  return {
    node: element("div", {}, element("h1", {}, "Add a query"), form),
    update(state) {
      const names = Object.keys(state.classes ?? {});
      if (queryClass.dataset.key !== names.join("\n")) {
        queryClass.dataset.key = names.join("\n");
        queryClass.replaceChildren(...names.map((text) => new Option(text, text)));
      }
      streams.textContent = state.streams ? `Streams: ${state.streams.join(", ")}` : "";
    },
  };
}
