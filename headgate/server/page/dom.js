// Elements of the page. Text always becomes a text node: names, SQL and errors of users are never
// parsed as HTML.

const SVG = "http://www.w3.org/2000/svg";

/** Create an element; `onclick` and the like are listeners, all else are attributes. */
export function element(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value === true) node.setAttribute(name, "");
    else if (value !== false && value != null) node.setAttribute(name, value);
  }
  node.append(...children.filter((child) => child != null));
  return node;
}

/** Create an element of an SVG drawing. */
export function drawn(tag, attributes = {}, ...children) {
  const node = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

/** Set the text of an element, only if it has changed: unchanged text costs no layout. */
export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

/** Tell a screen reader what has happened. */
export function announce(text) {
  document.getElementById("announcement").textContent = text;
}

/** Ask for confirmation; resolve to true if the user agrees. */
export function confirmed(title, text, yes) {
  const dialog = document.getElementById("confirmation");
  setText(document.getElementById("confirmation-title"), title);
  setText(document.getElementById("confirmation-text"), text);
  setText(document.getElementById("confirmation-yes"), yes);
  dialog.returnValue = "no";
  dialog.showModal();
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => resolve(dialog.returnValue === "yes"), { once: true });
  });
}

/** Return a box for messages: `say(text)` shows one, `refuse(text)` one of an error. */
export function messageBox() {
  const node = element("p", { class: "message", role: "alert", hidden: true });
  const show = (text, kind) => {
    node.hidden = !text;
    node.className = `message ${kind}`;
    setText(node, text);
  };
  return { node, say: (text) => show(text, "good"), refuse: (text) => show(text, "bad") };
}

/** Return a labelled field of a form. */
export function field(label, control, hint) {
  const id = control.id || `field-${label.replace(/\W+/g, "-").toLowerCase()}`;
  control.id = id;
  return element(
    "div",
    { class: "field" },
    element("label", { for: id }, label),
    control,
    hint ? element("small", {}, hint) : null,
  );
}
