// The server's routes, as the page asks them. Paths have no host: the page speaks to its own server alone.
import { storageOf } from "./store.js";

const session = storageOf("sessionStorage");
let key = session.getItem("fovea key") || "";

/** The server's response to a request. If the server wants an API key, the person is asked for one. */
export async function ask(path, options = {}) {
  for (;;) {
    const headers = { "Content-Type": "application/json" };
    if (key) headers.Authorization = "Bearer " + key;
    const response = await fetch(path, { ...options, headers });
    if (response.status !== 401) return response;
    key = prompt("This server wants an API key:") || "";
    if (!key) return response;
    session.setItem("fovea key", key);
  }
}

/** The JSON that the server answers. Throws an Error with the server's message. */
export async function askJson(path, body) {
  const response = await ask(path, body && { method: "POST", body: JSON.stringify(body) });
  if (!response.ok) throw new Error(await readError(response));
  return response.json();
}

export async function readError(response) {
  try {
    const { error } = await response.json();
    return error.message ?? error;
  } catch {
    return "The server answered with status " + response.status + ".";
  }
}

/** The objects of a stream of server-sent events, whose last one is [DONE]. Lines of comments are left out. */
export async function* events(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let held = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) throw new Error("The answer ended before its end was told.");
    held += value;
    for (let end; (end = held.indexOf("\n\n")) >= 0; held = held.slice(end + 2)) {
      const lines = held.slice(0, end).split("\n").filter((line) => line.startsWith("data:"));
      const data = lines.map((line) => line.slice(5).trimStart()).join("\n");
      if (data === "[DONE]") return;
      if (data) yield JSON.parse(data);
    }
  }
}

/** All models of the server: {id, size and memory in bytes, family, context in tokens, work: what it is for}. */
export async function listModels() {
  const { data } = await askJson("v1/models");
  const readable = data.filter(({ size }) => size !== undefined);  // no file that is broken
  return Promise.all(readable.map(async ({ id, size, memory }) => {
    const { details, model_info = {}, capabilities = ["completion"] } = await askJson("api/show", { model: id });
    const context = Object.entries(model_info).find(([name]) => name.endsWith(".context_length"))?.[1];
    const work = ["translation", "completion"].find((name) => capabilities.includes(name)) ?? capabilities[0];
    return { id, size, memory, context, work, family: details?.family };
  }));
}
