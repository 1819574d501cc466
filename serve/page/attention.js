// What each token of an answer and its conversation looks at, for one layer and head: a picture of all weights, and the tokens
// coloured by what the chosen one gives them.
import { element } from "./markdown.js";

// A token's text as something to read: spaces and line breaks show.
const readable = (token) => token.replace(/\n/g, "\u21b5").replace(/^ | $/g, "\u2423") || "\u2205";
const percent = (weight) => (100 * weight).toFixed(1) + " %";

/** Draws rows of weights, each row scaled by its largest. Returns the pixels of a cell's side. */
function draw(canvas, rows, chosen) {
  const n = rows.length, cell = Math.max(2, Math.min(14, Math.floor(360 / n))), style = getComputedStyle(canvas);
  canvas.width = canvas.height = n * cell;
  const pen = canvas.getContext("2d");
  pen.fillStyle = style.getPropertyValue("color");
  for (const [query, row] of rows.entries()) {
    const most = Math.max(...row, 1e-9);
    for (const [key, weight] of row.entries()) {
      pen.globalAlpha = Math.sqrt(weight / most);
      pen.fillRect(key * cell, query * cell, cell, cell);
    }
  }
  pen.globalAlpha = 1;
  pen.strokeStyle = style.getPropertyValue("outline-color");
  pen.strokeRect(0.5, chosen * cell + 0.5, n * cell - 1, cell - 1);
  return cell;
}

/** The section of a text whose weights `ask` gives: ({layer, head: null for the mean}) => a promise of {tokens, weights: a row of each, as long as what it sees, n_prompt_tokens, n_layers, n_heads}. */
export function attentionOf(ask) {
  const layers = element("select", { className: "layer" }), heads = element("select", { className: "head" });
  const map = element("canvas", { className: "map", role: "img" }), tokens = element("div", { className: "tokens" });
  map.ariaLabel = "All weights: a row for each token that looks, a column for each that is looked at";
  tokens.setAttribute("role", "group");
  tokens.ariaLabel = "Tokens; arrow keys choose one";
  const looks = element("p", { className: "looks", ariaLive: "polite" });
  const note = element("p", { className: "hint" }, "Point at a token or a row, or go with the arrow keys. The stronger the " +
    "colour, the more the chosen token looks there; the strongest is full. Tokens of the answer are bold.");
  const section = element("section", { className: "attention", ariaLabel: "Attention of the answer" },
    element("label", {}, "Layer ", layers), element("label", {}, "Head ", heads), tokens, looks, map, note);
  let seen = null, chosen = -1, cell = 1;

  const choose = (query, key = -1, focus = false) => {
    chosen = query;
    const row = seen.weights[query], most = Math.max(...row, 1e-9);
    for (const [i, button] of [...tokens.children].entries()) {
      button.style.setProperty("--share", ((row[i] || 0) / most).toFixed(3));
      button.setAttribute("aria-pressed", String(i === query));
      button.tabIndex = i === query ? 0 : -1;
      button.title = i in row ? percent(row[i]) : "later than the token";
    }
    const name = (i) => `\u201c${readable(seen.tokens[i])}\u201d`;
    const order = row.map((weight, i) => [weight, i]).sort((a, b) => b[0] - a[0]).slice(0, 5);
    if (key in row) order.unshift([row[key], key]);
    looks.textContent = `${name(query)} looks at ` + order.map(([weight, i]) => `${name(i)} ${percent(weight)}`).join(", ");
    cell = draw(map, seen.weights, query);
    if (focus) tokens.children[query].focus();
  };

  const tokenButton = (token, i) => {
    const button = element("button", { type: "button", textContent: readable(token) });
    if (i >= seen.n_prompt_tokens) button.className = "answer";
    button.addEventListener("mouseenter", () => choose(i));
    button.addEventListener("focus", () => chosen === i || choose(i));
    button.addEventListener("click", () => choose(i, -1, true));
    return button;
  };

  const load = async () => {
    looks.textContent = "\u2026";
    const first = !seen, head = heads.value === "" || heads.value === "mean" ? null : Number(heads.value);
    try {
      seen = await ask({ layer: Number(layers.value) || 0, head });
    } catch (error) {
      looks.textContent = error.message;
      return;
    }
    if (first) {
      for (let i = 0; i < seen.n_layers; ++i) layers.append(new Option(i, i));
      heads.append(new Option("mean of all", "mean"));
      for (let i = 0; i < seen.n_heads; ++i) heads.append(new Option(i, i));
      tokens.replaceChildren(...seen.tokens.map(tokenButton));
    }
    choose(chosen < 0 ? seen.tokens.length - 1 : chosen);
    section.scrollIntoView({ block: "nearest" });
  };

  map.addEventListener("mousemove", (event) => {
    if (!seen) return;
    const shown = (map.clientWidth / map.width) * cell, place = (at) => Math.min(Math.floor(at / shown), seen.tokens.length - 1);
    choose(Math.max(0, place(event.offsetY)), place(event.offsetX));
  });
  tokens.addEventListener("keydown", (event) => {
    const to = { ArrowLeft: chosen - 1, ArrowRight: chosen + 1, Home: 0, End: seen.tokens.length - 1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    choose(Math.min(Math.max(to, 0), seen.tokens.length - 1), -1, true);
  });
  layers.addEventListener("change", load);
  heads.addEventListener("change", load);
  load();
  return section;
}
