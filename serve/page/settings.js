// The dialog of settings: what requests say besides their messages. Sampling is the page's, in all conversations; the system text
// and the schema of answers belong to one.
import { element } from "./markdown.js";
import { keepSetting, setting } from "./store.js";

const $ = (id) => document.getElementById(id);
// Name of a request's field, what it does, its input's attributes.
const kFields = [
  ["temperature", "0: the likeliest token", { min: 0, step: "any" }],
  ["top_p", "tokens of this probability together", { min: 0, max: 1, step: "any" }],
  ["top_k", "so many tokens; 0: all", { min: 0, step: 1 }],
  ["min_p", "least, of the likeliest's probability", { min: 0, max: 1, step: "any" }],
  ["repetition_penalty", "above 1: less repeated", { min: 0, step: "any" }],
  ["frequency_penalty", "for each time a token came", { min: -2, max: 2, step: "any" }],
  ["presence_penalty", "once for a token that came", { min: -2, max: 2, step: "any" }],
  ["max_tokens", "of an answer, at most", { min: 1, step: 1 }],
  ["seed", "0, or another; -1: random", { min: -1, step: 1 }],
];
const sampling = setting("sampling") ?? {};
let conversation = null, changed = () => {};

function showTheme() {
  const theme = setting("theme") ?? "";
  document.documentElement.className = theme;
  $("theme").value = theme;
}

/** An input's text as an object of JSON; {} for none. An error goes to the input, which keeps the dialog open. */
function objectOf(area) {
  let found = {}, wrong = "";
  try {
    if (area.value.trim()) found = JSON.parse(area.value);
    if (typeof found !== "object" || found === null || Array.isArray(found)) wrong = "Expected a JSON object, {…}.";
  } catch (error) {
    wrong = error.message;
  }
  area.setCustomValidity(wrong);
  return wrong ? {} : found;
}

function keep() {
  for (const [name] of kFields) {
    const { value, validity } = $("field-" + name);
    if (validity.valid) sampling[name] = value === "" ? undefined : Number(value);
  }
  objectOf($("more"));
  objectOf($("schema"));
  if ($("more").validity.valid) sampling.more = $("more").value;
  keepSetting("sampling", sampling);
  if ($("schema").validity.valid) conversation.schema = $("schema").value.trim();
  conversation.system = $("system").value;
  changed();
}

/** Opens the dialog for a conversation. */
export function openSettings(of) {
  conversation = of;
  for (const [name] of kFields) $("field-" + name).value = sampling[name] ?? "";
  $("more").value = sampling.more ?? "";
  $("system").value = of.system;
  $("schema").value = of.schema;
  for (const area of [$("more"), $("schema")]) objectOf(area);
  $("dialog").showModal();
}

/** `onChange` is called after each change. */
export function prepareSettings(onChange) {
  changed = onChange;
  for (const [name, about, attributes] of kFields) {
    const input = element("input", { id: "field-" + name, type: "number", ...attributes });
    input.setAttribute("aria-describedby", "about-" + name);
    $("sampling").append(element("div", {}, element("label", {}, element("span", {}, name), input),
      element("p", { id: "about-" + name, className: "hint" }, about)));
  }
  $("dialog").addEventListener("input", () => conversation && keep());
  $("reset").addEventListener("click", () => {
    for (const [name] of kFields) $("field-" + name).value = "";
    for (const id of ["more", "schema", "system"]) $(id).value = "";
    keep();
  });
  $("theme").addEventListener("change", () => {
    keepSetting("theme", $("theme").value);
    showTheme();
  });
  showTheme();
}

/** Fields of a request for the next answer of a conversation. Each version of an answer has a seed of its own. */
export function requestFields(of, version) {
  const { more, ...fields } = sampling;
  if (version && fields.seed !== -1) fields.seed = (fields.seed ?? 0) + version;
  if (of.schema) fields.response_format = { type: "json_schema", json_schema: { name: "answer", schema: JSON.parse(of.schema) } };
  return { ...fields, ...JSON.parse(more || "{}") };
}

/** What is set, in a few words. */
export function settingsText(of) {
  const set = kFields.map(([name]) => name).filter((name) => sampling[name] !== undefined)
    .map((name) => `${name} ${sampling[name]}`);
  if (sampling.more) set.push("more fields");
  if (of.system) set.push("a system text");
  if (of.schema) set.push("answers of a schema");
  return set.join(", ");
}
