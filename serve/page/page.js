// The page: the list of conversations, the one that is open, and the answers under way. An answer writes into its conversation,
// whichever is open, so none ever lands in another one.
import { ask, events, listModels, readError } from "./client.js";
import { element } from "./markdown.js";
import { messagesBefore, viewOf } from "./messages.js";
import { openSettings, prepareSettings, requestFields, settingsText } from "./settings.js";
import * as store from "./store.js";

const $ = (id) => document.getElementById(id);
const session = store.storageOf("sessionStorage");
const kPrompts = ["Explain how a rainbow forms, in three sentences.", "Compare tea and coffee in a table.",
  "Write a Python function that tells whether a word is a palindrome."];
const kDemoPrompts = ["turn on the reading lamp", "play jazz", "wake me up at 7 am"];  // the built-in model knows a home's words
const runs = new Map();  // what stops the answer under way, by its conversation's id
let current = store.begin(""), views = new Map(), models = [], problem = "", follows = true, lastTop = 0;

/** Calls `work` some time after `soon`, however often that comes; seldom enough to take a tenth of the time. */
function calm(work, least) {
  let timer = 0, pause = least;
  const run = () => {
    timer = 0;
    const begun = performance.now();
    work();
    pause = Math.max(least, 10 * (performance.now() - begun));
  };
  return { soon: () => (timer ||= setTimeout(run, pause)), now: () => { clearTimeout(timer); run(); } };
}

/** To the message, where that does not open a telephone's keyboard. */
function toText() {
  if (matchMedia("(hover: hover)").matches) $("text").focus();
}

function save(conversation) {
  $("notice").textContent = store.save(conversation) ? "" : "The browser's storage is full: what is new is kept until the page " +
    "is closed. Export or delete conversations.";
}

// ---- scrolling: the end stays in sight until the person scrolls up -----------------------------------------------------

const talk = $("talk"), gap = () => talk.scrollHeight - talk.scrollTop - talk.clientHeight;

function stick() {
  if (follows) talk.scrollTop = talk.scrollHeight;
  lastTop = talk.scrollTop;
  $("to-end").hidden = follows || gap() < 8;
}

talk.addEventListener("scroll", () => {
  follows = gap() < 8 || (follows && talk.scrollTop >= lastTop - 1);
  lastTop = talk.scrollTop;
  $("to-end").hidden = follows || gap() < 8;
});

function toEnd() {
  follows = true;
  stick();
}
$("to-end").addEventListener("click", () => { toEnd(); toText(); });

// ---- the open conversation ---------------------------------------------------------------------------------------------

function bytesText(bytes) {
  const power = Math.min(3, Math.floor(Math.log10(Math.max(bytes, 1)) / 3)), value = bytes / 1000 ** power;
  return `${value < 10 && power ? value.toFixed(1) : Math.round(value)} ${["bytes", "KB", "MB", "GB"][power]}`;
}

const model = () => models.find(({ id }) => id === current.model);

/** What an empty conversation shows: the model, and what to begin with. */
function welcome() {
  const served = model(), section = element("section", { className: "welcome" });
  if (problem) {
    const again = element("button", { type: "button", className: "main", textContent: "Try again" });
    again.addEventListener("click", readModels);
    section.append(element("h2", {}, "No model"), element("p", { className: "error" }, problem), again);
  }
  if (!served) return section;
  const facts = [["Family", served.family], ["Size", served.size && bytesText(served.size)],
    ["Context", served.context && served.context.toLocaleString("en") + " tokens"],
    ["Memory", served.memory && bytesText(served.memory) + " beside the model"]];
  const list = element("dl");
  for (const [name, fact] of facts) if (fact) list.append(element("div", {}, element("dt", {}, name), element("dd", {}, fact)));
  const prompts = element("ul", { className: "prompts" });
  for (const text of served.id === "demo" ? kDemoPrompts : kPrompts) {
    const button = element("button", { type: "button", textContent: text });
    button.addEventListener("click", () => send(text));
    prompts.append(element("li", {}, button));
  }
  const hint = element("p", { className: "hint" }, "Write a message, or begin with one of these:");
  section.append(element("h2", {}, served.id), list, hint, prompts);
  return section;
}

/** The line below the message: how full the context is, and what is set. */
function showHint() {
  const cost = store.path(current).map((i) => current.nodes[i].cost).findLast((c) => c?.written);
  const context = model()?.context, set = settingsText(current), parts = [];
  if (cost && context) parts.push(`${cost.read + cost.written} of ${context.toLocaleString("en")} tokens of context`);
  if (set) parts.push(set);
  $("hint").textContent = parts.join(" · ") || "Enter sends, Shift and Enter begin a line.";
}

function showRunning() {
  const isRunning = runs.has(current.id);
  $("send").textContent = isRunning ? "Stop" : "Send";
  $("send").disabled = !isRunning && !model();
  talk.classList.toggle("running", isRunning);
}

function render() {
  views = new Map(store.path(current).map((i) => [i, viewOf(current, i, act)]));
  for (const [i, view] of views) {
    if (runs.has(current.id) && i === current.leaf) view.update();
    else view.finish();
  }
  talk.replaceChildren(...(views.size ? [...views.values()].map(({ article }) => article) : [welcome()]));
  $("title").textContent = current.title || "New conversation";
  document.title = current.title ? current.title + " – Fovea" : "Fovea";
  $("model").value = current.model;
  showRunning();
  showHint();
  renderList();
}

function open(conversation) {
  keepDraft();
  current = conversation;
  if (!model()) current.model = models.find(({ id }) => id === store.setting("model"))?.id ?? models[0]?.id ?? current.model;
  session.setItem("fovea current", current.id);
  $("text").value = current.draft;
  showSide(false);
  render();
  toEnd();
}

function keepDraft() {
  const draft = $("text").value;
  if (current.draft === draft) return;
  current.draft = draft;
  save(current);
}

// ---- answers -----------------------------------------------------------------------------------------------------------

/** Reads a stream into a node. Throws what went wrong. */
async function readAnswer(conversation, index, version, signal, onPiece) {
  const node = conversation.nodes[index], begun = performance.now(), cost = { read: 0, written: 0, first: 0, all: 0 };
  const response = await ask("v1/chat/completions", { method: "POST", signal, body: JSON.stringify({
    model: node.model, messages: messagesBefore(conversation, index), stream: true, stream_options: { include_usage: true },
    ...requestFields(conversation, version) }) });
  if (!response.ok) throw new Error(await readError(response));
  for await (const event of events(response)) {
    if (event.error) throw new Error(event.error.message ?? event.error);
    const { delta = {}, finish_reason } = event.choices?.[0] ?? {};
    if (delta.reasoning_content) node.reasoning = (node.reasoning ?? "") + delta.reasoning_content;
    if (delta.content) node.content += delta.content;
    if (delta.content || delta.reasoning_content) cost.first ||= performance.now() - begun;
    if (finish_reason === "length") node.state = "length";
    if (event.usage) Object.assign(cost, { read: event.usage.prompt_tokens, written: event.usage.completion_tokens });
    cost.all = performance.now() - begun;
    node.cost = cost;
    onPiece();
  }
}

/** Has the server answer a message of a conversation; the conversation may be left meanwhile. */
async function answer(conversation, user, version = 0) {
  const controller = new AbortController();
  const index = store.add(conversation, user,
    { role: "assistant", content: "", model: conversation.model, state: "running", form: Boolean(conversation.schema) });
  const node = conversation.nodes[index], isOpen = () => current === conversation;
  const shown = calm(() => {
    if (!isOpen() || runs.get(conversation.id) !== controller) return;
    views.get(index).update();
    stick();
  }, 50), saved = calm(() => store.find(conversation.id) === conversation && save(conversation), 1000);
  runs.set(conversation.id, controller);
  save(conversation);
  render();
  toEnd();
  if (document.activeElement === document.body) toText();  // what was clicked is gone
  $("status").textContent = node.model + " is writing";
  try {
    await readAnswer(conversation, index, version, controller.signal, () => { shown.soon(); saved.soon(); });
  } catch (error) {
    node.state = "stopped";
    if (!controller.signal.aborted) {
      node.state = "failed";
      node.error = error instanceof TypeError ? "The server does not answer: " + error.message : error.message;
    }
  }
  if (node.state === "running") delete node.state;
  runs.delete(conversation.id);
  conversation.changed = Date.now();
  saved.now();
  if (isOpen()) {
    views.get(index).finish();
    stick();
    showRunning();
    showHint();
  }
  $("status").textContent = node.error ? "The answer failed: " + node.error : isOpen() ? node.content : "";
  renderList();
}

function send(text) {
  if (runs.has(current.id) || !model()) return;
  // What got no answer is not sent again: the new message takes its place, beside it.
  const node = (i) => current.nodes[i] ?? {};
  let parent = current.leaf;
  if (node(parent).role === "assistant" && !node(parent).content) parent = node(parent).parent;
  if (node(parent).role === "user") parent = node(parent).parent;
  current.title ||= text.split("\n")[0].slice(0, 60);
  current.draft = $("text").value = "";
  answer(current, store.add(current, parent, { role: "user", content: text }));
}

const act = {
  resend: (index, text) => answer(current, store.add(current, current.nodes[index].parent, { role: "user", content: text })),
  regenerate: (index) => answer(current, current.nodes[index].parent, store.versions(current, index).length),
  show: (index) => {
    store.show(current, index);
    save(current);
    const top = talk.scrollTop, name = document.activeElement.ariaLabel;
    render();
    talk.scrollTop = top;
    const buttons = [...views.get(index).foot.querySelectorAll(".versions button:not(:disabled)")];
    (buttons.find((button) => button.ariaLabel === name) ?? buttons[0]).focus({ preventScroll: true });
  },
};

// ---- the list ----------------------------------------------------------------------------------------------------------

function showSide(isShown) {
  $("side").classList.toggle("shown", isShown);
  $("open-side").setAttribute("aria-expanded", String(isShown));
}

function download(name, type, text) {
  const address = URL.createObjectURL(new Blob([text], { type }));
  element("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 60000);
}

function rename(conversation, item) {
  const input = element("input", { value: conversation.title, maxLength: 100, ariaLabel: "Name of the conversation" });
  let isClosed = false;
  const close = (keeps) => {
    if (isClosed) return;
    isClosed = true;  // what follows takes the focus away
    if (keeps && input.value.trim()) conversation.title = input.value.trim();
    save(conversation);
    render();
    $("list").querySelector("[aria-current=true]")?.focus();
  };
  input.addEventListener("keydown", (event) => {
    if (event.key === "Enter") close(true);
    if (event.key === "Escape") close(false);
  });
  item.replaceChildren(input);
  input.select();
  input.addEventListener("blur", () => close(true));
}

function remove(conversation) {
  if (!confirm(`Delete “${conversation.title}”?`)) return;
  runs.get(conversation.id)?.abort();
  store.remove(conversation.id);
  current = store.begin(conversation.model);
  $("text").value = "";
  open(current);
  toText();
}

function itemOf(conversation) {
  const isCurrent = conversation === current, item = element("li");
  const when = new Date(conversation.changed).toLocaleString([], { dateStyle: "medium", timeStyle: "short" });
  const button = element("button", { type: "button", className: "open" },
    element("span", {}, conversation.title || "Not sent yet"),
    element("small", {}, runs.has(conversation.id) ? "writing …" : when));
  if (isCurrent) button.setAttribute("aria-current", "true");
  button.addEventListener("click", () => {
    open(conversation);
    toText();
  });
  item.append(button);
  if (!isCurrent) return item;
  const tools = element("div", { className: "row tools" });
  const name = conversation.title.replace(/[^\p{L}\p{N}]+/gu, "-").slice(0, 40) || "conversation";
  const works = { Rename: () => rename(conversation, item),
    Export: () => download(name + ".md", "text/markdown", store.markdownOf(conversation)), Delete: () => remove(conversation) };
  for (const [text, work] of Object.entries(works)) {
    const tool = element("button", { type: "button", className: "quiet", textContent: text });
    tool.addEventListener("click", work);
    tools.append(tool);
  }
  item.append(tools);
  return item;
}

function renderList() {
  const words = $("search").value, found = store.search(words), buttons = () => [...$("list").querySelectorAll("button")];
  const focused = buttons().indexOf(document.activeElement);
  $("list").replaceChildren(...found.map(itemOf));
  buttons()[focused]?.focus();
  $("none").hidden = found.length > 0;
  $("none").textContent = words ? "No conversation has these words." : "Conversations stay in this browser.";
  $("export-all").hidden = !store.search("").length;
}

// ---- the page ----------------------------------------------------------------------------------------------------------

async function readModels() {
  try {
    const all = await listModels();
    models = all.filter(({ work }) => work === "completion");
    problem = models.length ? "" : "No model here chats: " + all.map(({ id, work }) => `${id} is for ${work}`).join(", ") + ".";
  } catch (error) {
    problem = error instanceof TypeError ? "The server does not answer: " + error.message : error.message;
  }
  $("model").replaceChildren(...models.map(({ id }) => new Option(id, id)));
  $("model").disabled = models.length < 2;
  open(current);
}

function begin() {
  open(store.begin(""));
  toText();
}

$("form").addEventListener("submit", (event) => {
  event.preventDefault();
  if (runs.has(current.id)) return runs.get(current.id).abort();
  const text = $("text").value.trim();
  if (text) send(text);
});
$("text").addEventListener("keydown", (event) => {
  if (event.key === "Escape") runs.get(current.id)?.abort();
  if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
  event.preventDefault();
  if (!runs.has(current.id)) $("form").requestSubmit();
});
const drafted = calm(keepDraft, 300);
$("text").addEventListener("input", drafted.soon);
$("new").addEventListener("click", begin);
$("open-side").addEventListener("click", () => { showSide(true); $("new").focus(); });
$("close-side").addEventListener("click", () => { showSide(false); $("open-side").focus(); });
$("side").addEventListener("keydown", (event) => {
  if (event.key === "Escape" && event.target.tagName !== "INPUT") $("close-side").click();
});
$("search").addEventListener("input", renderList);
$("export-all").addEventListener("click", () => download("fovea-conversations.json", "application/json", store.jsonOfAll()));
$("model").addEventListener("change", () => {
  current.model = $("model").value;
  store.keepSetting("model", current.model);
  if (current.nodes.length) save(current);
  render();
});
$("settings").addEventListener("click", () => openSettings(current));
prepareSettings(() => {
  if (current.nodes.length) save(current);
  showHint();
});
addEventListener("pagehide", () => {
  keepDraft();
  for (const id of runs.keys()) save(store.find(id));
});
addEventListener("storage", ({ key }) => {
  const id = store.idOf(key);
  if (!id || runs.has(id)) return;
  store.readAgain(id);
  if (id === current.id && store.find(id)) {
    current = store.find(id);
    render();
  }
  renderList();
});

store.readAll();
current = store.find(session.getItem("fovea current")) ?? current;
$("text").value = current.draft;
render();
readModels();
