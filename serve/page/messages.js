// One message of a conversation: its text, what its answer cost, and what can be done with it.
import { attentionOf } from "./attention.js";
import { askJson } from "./client.js";
import { codeBlock, copyButton, element, markdownIn } from "./markdown.js";
import { path, versions } from "./store.js";

const button = (text, onClick, className = "quiet") => {
  const made = element("button", { type: "button", className, textContent: text });
  made.addEventListener("click", onClick);
  return made;
};

const rounded = (value) => (value < 10 ? value.toFixed(1) : Math.round(value).toLocaleString("en"));
const timeText = (ms) => (ms < 1000 ? Math.round(ms) + " ms" : rounded(ms / 1000) + " s");

/** What an answer cost: {read, written: tokens; first, all: milliseconds from its request}. */
function costText({ read, written, first, all }) {
  const parts = [];
  if (written) parts.push(`${read} tokens read, ${written} written`);
  parts.push(timeText(all));
  if (first) parts.push("first after " + timeText(first));
  if (written > 1) parts.push(rounded((written - 1) / Math.max((all - first) / 1000, 0.001)) + " tokens a second");
  return parts.join(" · ");
}

const kNotes = {
  running: "The page was closed before this answer ended.",
  stopped: "Stopped.",
  length: "Cut at max_tokens or the end of the context.",
};

/** The messages before a node, as requests have them. */
export function messagesBefore(conversation, index) {
  const messages = path(conversation, conversation.nodes[index].parent).map((i) => conversation.nodes[i])
    .map(({ role, content, reasoning }) => ({ role, content, ...(reasoning && { reasoning_content: reasoning }) }));
  return conversation.system ? [{ role: "system", content: conversation.system }, ...messages] : messages;
}

/** Shows a text as its kind wants: a person's as it is, an answer of a schema as code, other answers as Markdown. */
function shownIn(body, node) {
  if (node.role === "user") return (text) => (body.textContent = text);
  if (!node.form) return markdownIn(body);
  const block = codeBlock("", "json");
  body.append(block);
  return (text) => (block.querySelector("code").textContent = text);
}

/** A form in place of a message, to write it anew. */
function edit(view, node, resend) {
  const area = element("textarea", { value: node.content, ariaLabel: "Your message, anew" });
  const form = element("form", { className: "edit" }, area,
    element("div", { className: "row" }, element("button", { className: "main" }, "Send anew"), button("Cancel", () => close())));
  const close = () => {
    form.replaceWith(view.body);
    view.foot.hidden = false;
    view.foot.querySelector(".edit-button").focus();
  };
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    if (area.value.trim()) resend(area.value.trim());
  });
  form.addEventListener("keydown", (event) => {
    if (event.key === "Escape") close();
    if (event.key !== "Enter" || event.shiftKey || event.isComposing || event.target !== area) return;
    event.preventDefault();
    form.requestSubmit();
  });
  view.body.replaceWith(form);
  view.foot.hidden = true;
  area.focus();
}

function versionButtons(conversation, index, act) {
  const all = versions(conversation, index), at = all.indexOf(index);
  if (all.length < 2) return [];
  const before = button("‹", () => act.show(all[at - 1])), after = button("›", () => act.show(all[at + 1]));
  before.ariaLabel = "Previous version";
  after.ariaLabel = "Next version";
  before.disabled = at === 0;
  after.disabled = at === all.length - 1;
  return [element("span", { className: "versions" }, before, ` ${at + 1} of ${all.length} `, after)];
}

/** The button below an answer that shows its attention, and hides it. */
function attentionButton(view, asked) {
  let section = null;
  const made = button("Attention", () => {
    if (section) section.remove();
    section = section ? null : attentionOf((which) => askJson("v1/attention", { ...asked, ...which }));
    if (section) view.article.append(section);
    made.setAttribute("aria-expanded", String(section !== null));
  });
  made.setAttribute("aria-expanded", "false");
  return made;
}

function fillFoot(view, conversation, index, act) {
  const node = conversation.nodes[index], isAnswer = node.role === "assistant", parts = [];
  const note = kNotes[node.state];
  if (node.error) parts.push(element("p", { className: "error" }, node.error));
  if (note) parts.push(element("p", { className: "hint" }, note));
  if (node.cost) parts.push(element("p", { className: "hint cost" }, costText(node.cost)));
  const row = element("div", { className: "row" });
  if (node.content) row.append(copyButton(() => node.content));
  if (!isAnswer) row.append(button("Edit", () => edit(view, node, (text) => act.resend(index, text)), "quiet again edit-button"));
  if (isAnswer) row.append(button(node.content ? "Regenerate" : "Try again", () => act.regenerate(index), "quiet again"));
  if (isAnswer && node.content) {
    row.append(attentionButton(view, { model: node.model, messages: messagesBefore(conversation, index), answer: node.content }));
  }
  row.append(...versionButtons(conversation, index, act));
  view.foot.replaceChildren(...parts, row);
}

/**
 * The view of a node: {article, body, update, finish}. `update` shows what the node's text has become, `finish` what it is at
 * its end. act: {resend(index, text), regenerate(index), show(index)}.
 */
export function viewOf(conversation, index, act) {
  const node = conversation.nodes[index];
  const body = element("div", { className: "body" }), foot = element("div", { className: "foot" });
  const thought = document.createTextNode("");
  const reasoning = element("details", { className: "reasoning" }, element("summary", {}, "Reasoning"), thought);
  const name = element("h2", {}, node.role === "user" ? "You" : node.model);
  const article = element("article", { className: node.role }, name, body, foot);
  const view = { article, body, foot };
  let showText = shownIn(body, node);
  view.update = () => {
    if (node.reasoning && !thought.data) name.after(reasoning);
    if (node.reasoning) thought.data = node.reasoning;
    showText(node.content);
  };
  view.finish = () => {
    body.replaceChildren();
    showText = shownIn(body, node);
    view.update();
    article.classList.toggle("failed", Boolean(node.error));
    fillFoot(view, conversation, index, act);
  };
  return view;
}
