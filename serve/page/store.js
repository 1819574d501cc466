// Conversations, as they stay in the browser's own storage: one entry for each.
//
// A conversation is a tree: an edited message and an answer that was asked for again are new nodes beside the old ones, so no
// text is lost. `leaf` is the last node of the branch that is shown.
//
//     {id, title, model, changed, system, schema, draft, leaf, nodes: [{parent, role, content, reasoning, state, ...}]}

/** localStorage or sessionStorage; if the browser forbids it, one that ends with the page. */
export function storageOf(name) {
  try {
    window[name].getItem("");
    return window[name];
  } catch {
    const held = new Map();
    return {
      getItem: (key) => held.get(key) ?? null,
      setItem: (key, value) => held.set(key, value),
      removeItem: (key) => held.delete(key),
      key: (i) => [...held.keys()][i] ?? null,
      get length() { return held.size; },
    };
  }
}

const storage = storageOf("localStorage"), kPrefix = "fovea conversation ";
const conversations = new Map();

function read(key) {
  try {
    const found = JSON.parse(storage.getItem(key));
    if (Array.isArray(found?.nodes)) return found;
  } catch { /* not an entry of ours */ }
  return null;
}

export function readAll() {
  for (let i = 0; i < storage.length; ++i) {
    const key = storage.key(i), found = key.startsWith(kPrefix) && read(key);
    if (found) conversations.set(found.id, found);
  }
}

/** The id of the conversation whose entry has this key; null: none's. */
export const idOf = (key) => (key?.startsWith(kPrefix) ? key.slice(kPrefix.length) : null);

/** Takes over what another tab wrote. */
export function readAgain(id) {
  const found = read(kPrefix + id);
  if (found) conversations.set(id, found);
  else conversations.delete(id);
}

/** A new conversation, in the storage once there is something to keep. */
export const begin = (model) => ({ id: Date.now().toString(36) + Math.random().toString(36).slice(2, 8), title: "", model,
  changed: Date.now(), system: "", schema: "", draft: "", leaf: -1, nodes: [] });

export const find = (id) => conversations.get(id);

/** False: the storage is full, and the page alone has the newest. */
export function save(conversation) {
  const key = kPrefix + conversation.id;
  if (!conversation.nodes.length && !conversation.draft) {
    remove(conversation.id);
    return true;
  }
  conversations.set(conversation.id, conversation);
  try {
    storage.setItem(key, JSON.stringify(conversation));
    return true;
  } catch {
    return false;
  }
}

export function remove(id) {
  conversations.delete(id);
  storage.removeItem(kPrefix + id);
}

/** Those whose title or texts have the words, the newest first. */
export function search(words) {
  const wanted = words.trim().toLowerCase();
  const has = (text) => text?.toLowerCase().includes(wanted);
  return [...conversations.values()].filter((c) => has(c.title) || c.nodes.some((node) => has(node.content)))
    .sort((a, b) => b.changed - a.changed);
}

/** Adds a node behind `parent` (-1: the beginning) and shows its branch. Returns its number. */
export function add(conversation, parent, node) {
  conversation.nodes.push({ ...node, parent });
  conversation.changed = Date.now();
  return (conversation.leaf = conversation.nodes.length - 1);
}

/** Numbers of the nodes from the first message to `last`. */
export function path(conversation, last = conversation.leaf) {
  const found = [];
  for (let i = last; i >= 0; i = conversation.nodes[i].parent) found.unshift(i);
  return found;
}

/** Numbers of all versions of a node, itself among them. */
export const versions = (conversation, i) =>
  conversation.nodes.flatMap((node, other) => (node.parent === conversation.nodes[i].parent ? [other] : []));

/** Shows the newest branch through a node. */
export function show(conversation, i) {
  for (let child = i; child >= 0; child = conversation.nodes.findLastIndex((node) => node.parent === i)) i = child;
  conversation.leaf = i;
}

/** The branch that is shown, as a Markdown document. */
export function markdownOf(conversation) {
  const parts = path(conversation).map((i) => conversation.nodes[i])
    .map(({ role, model, content }) => `## ${role === "user" ? "You" : model || "Assistant"}\n\n${content}\n`);
  if (conversation.system) parts.unshift(`## System\n\n${conversation.system}\n`);
  return `# ${conversation.title}\n\n${parts.join("\n")}`;
}

export const jsonOfAll = () => JSON.stringify({ conversations: search("") }, null, 1);

/** A setting of the page; undefined if none is kept. */
export function setting(name) {
  try { return JSON.parse(storage.getItem("fovea setting " + name)) ?? undefined; } catch { return undefined; }
}

export function keepSetting(name, value) {
  try { storage.setItem("fovea setting " + name, JSON.stringify(value)); } catch { /* full: kept until the page ends */ }
}
