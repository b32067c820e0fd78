// A page without a browser: elements as plain objects, enough of them for the site's own script. Reads a JSON document
// {tree, script, actions} from standard input, where an element is [tag, attributes, children], runs the script, does the
// actions (["click", column], ["select", label, value]) and prints the words of the last table, and the headings of the
// sections that are shown, after each.
"use strict";

class Element {
  constructor(tag, attributes, children) {
    this.tag = tag;
    this.attributes = attributes;
    this.children = [];
    this.listeners = {};
    this.parent = null;
    this.value = "";
    for (const child of children) this.appendChild(child);
  }
  appendChild(child) {
    if (child.parent) child.parent.children.splice(child.parent.children.indexOf(child), 1);
    if (child instanceof Element) child.parent = this;
    this.children.push(child);
  }
  getAttribute(name) { return name in this.attributes ? this.attributes[name] : null; }
  setAttribute(name, value) { this.attributes[name] = String(value); }
  removeAttribute(name) { delete this.attributes[name]; }
  get hidden() { return "hidden" in this.attributes; }
  set hidden(value) { if (value) this.attributes.hidden = ""; else delete this.attributes.hidden; }
  get textContent() { return this.children.map((c) => (c instanceof Element ? c.textContent : c)).join(""); }
  set textContent(value) { this.children = value === "" ? [] : [value]; }
  get elements() { return this.children.filter((c) => c instanceof Element); }
  getElementsByTagName(tag) {
    const fits = (c) => tag === "*" || c.tag === tag;
    return this.elements.flatMap((c) => (fits(c) ? [c] : []).concat(c.getElementsByTagName(tag)));
  }
  getElementById(id) {
    if (this.attributes.id === id) return this;
    for (const child of this.elements) { const found = child.getElementById(id); if (found) return found; }
    return null;
  }
  addEventListener(kind, listener) { this.listeners[kind] = listener; }
  get cells() { return this.elements; }
  get rows() { return this.elements.filter((c) => c.tag === "tr"); }
  get tHead() { return this.elements.find((c) => c.tag === "thead"); }
  get tBodies() { return this.elements.filter((c) => c.tag === "tbody"); }
}

function build(node) {
  return typeof node === "string" ? node : new Element(node[0], node[1], node[2].map(build));
}

const input = JSON.parse(require("fs").readFileSync(0, "utf-8"));
const root = build(input.tree);
root.createElement = (tag) => new Element(tag, {}, []);
new Function("document", input.script)(root);

const table = root.getElementsByTagName("table").findLast((t) => t.getAttribute("data-sort") !== null);
const words = (row) => row.cells.filter((c) => !c.hidden).map((c) => c.textContent.trim());
const seen = () => ({
  head: words(table.tHead.rows[0]),
  sort: table.tHead.rows[0].cells.map((c) => c.getAttribute("aria-sort")),
  rows: table.tBodies[0].rows.filter((r) => !r.hidden).map(words),
  sections: root.getElementsByTagName("section").filter((s) => !s.hidden).map((s) => s.elements[0].textContent),
  form: root.getElementsByTagName("form").map((f) => [f.hidden, f.getElementsByTagName("output")[0].textContent]),
});
const out = [seen()];
for (const [kind, name, value] of input.actions) {
  if (kind === "click") {
    const button = table.getElementsByTagName("button").find((b) => b.textContent === name);
    button.parent.listeners.click();  // a click on the button reaches its cell
  } else {
    const label = root.getElementsByTagName("label").find((l) => l.textContent.startsWith(name));
    const select = label.getElementsByTagName("select")[0];
    select.value = value;
    select.listeners.change();
  }
  out.push(seen());
}
console.log(JSON.stringify(out));
