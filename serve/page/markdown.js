// Markdown of answers as elements. The text is a model's, so anybody's: it becomes text nodes only, HTML in it stays text, links
// lead to http, https and mailto alone, and a picture is a link to it. Time is linear in the text; nesting is bounded.
//
// Headings, paragraphs (whose line breaks stay), fenced code, lists, quotes, tables, rules; emphasis, code, links.

const kDeepest = 12, kMostOpen = 50, kMostColumns = 100;
const kItem = /^( *)([-*+]|\d{1,9}[.)])([ \t]+|$)/, kFence = /^ {0,3}(`{3,}(?!`)|~{3,}(?!~))([^`]*)$/;
const kRule = /^ {0,3}([-*_])[ \t]*(?:\1[ \t]*){2,}$/, kHeading = /^ {0,3}(#{1,6})(?:[ \t]+([^ \t][^]*)?)?$/, kQuote = /^ {0,3}> ?/;

// "(address)" or "(address "title")"; the address may hold one pair of brackets.
const kTarget = /\( {0,9}<?([^\s<>()]{1,2000}(?:\([^\s<>()]{0,200}\)[^\s<>()]{0,200})?)>?(?: {1,9}"[^"]{0,300}")? {0,9}\)/y;

export const element = (name, properties = {}, ...children) => {
  const made = Object.assign(document.createElement(name), properties);
  for (const child of children) made.append(child);
  return made;
};

/** Copies a text. Where the browser keeps its clipboard from pages without TLS, by way of a selection. */
export async function copyText(text, button) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const area = element("textarea", { value: text, className: "hidden" });
    (document.querySelector("dialog[open]") ?? document.body).append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
  button.textContent = "Copied";
  button.focus();
  setTimeout(() => (button.textContent = "Copy"), 1500);
}

export function copyButton(text) {
  const button = element("button", { type: "button", className: "quiet copy", textContent: "Copy" });
  button.addEventListener("click", () => copyText(text(), button));
  return button;
}

/** Code with its language and a button that copies it. */
export function codeBlock(text, language) {
  const code = element("code", { textContent: text });
  const head = element("div", { className: "code-head" }, element("span", {}, language), copyButton(() => code.textContent));
  return element("div", { className: "code-block" }, head, element("pre", { tabIndex: 0 }, code));
}

// ---- inline ------------------------------------------------------------------------------------------------------------

const isWord = (character) => /[\p{L}\p{N}]/u.test(character);

function linkTo(address) {
  let url;
  try { url = new URL(address); } catch { return null; }
  if (!["http:", "https:", "mailto:"].includes(url.protocol)) return null;
  return element("a", { href: url.href, title: url.href, target: "_blank", rel: "noopener noreferrer nofollow" });
}

/** For each length of a run of backticks: where such runs begin, in order. */
function backticks(text) {
  const runs = new Map();
  for (const { 0: run, index } of text.matchAll(/`+/g)) {
    if (!runs.has(run.length)) runs.set(run.length, { starts: [], next: 0 });
    runs.get(run.length).starts.push(index);
  }
  return runs;
}

class Inline {
  constructor(text) {
    Object.assign(this, { text, at: 0, plain: "", out: [], open: [], ticks: backticks(text) });
  }

  nodes() {
    while (this.at < this.text.length) this.step();
    this.flush();
    return this.out;
  }

  flush() {
    if (this.plain) this.out.push(document.createTextNode(this.plain));
    this.plain = "";
  }

  push(node) {
    this.flush();
    this.out.push(node);
  }

  match(pattern) {
    pattern.lastIndex = this.at;
    return pattern.exec(this.text);
  }

  take(length) {
    this.plain += this.text.slice(this.at, this.at + length);
    this.at += length;
  }

  step() {
    const { text, at } = this, next = text[at];
    const ordinary = this.match(/[^\\`*_~[\]!h<]+/y);
    if (ordinary) return this.take(ordinary[0].length);
    if (next === "\\" && this.match(/\\[\\`*_#+.!|~<>-]/y)) return this.escape();
    if (next === "`") return this.code();
    if ("*_~".includes(next)) return this.emphasis(next);
    if (next === "[" || (next === "!" && text[at + 1] === "[")) return this.begin(next === "[" ? "[" : "![");
    if (next === "]") return this.link();
    const line = next === "<" && this.match(/<br ?\/?>/y);
    if (line) {
      this.push(element("br"));
      this.at += line[0].length;
    } else if (next !== "h" || !this.address()) {
      this.take(1);
    }
  }

  escape() {
    this.plain += this.text[this.at + 1];
    this.at += 2;
  }

  /** A mark that may open an element stays the text that it is until something closes it. */
  begin(mark) {
    this.flush();
    if (this.open.length < kMostOpen) this.open.push({ mark, at: this.out.length });
    this.out.push(document.createTextNode(mark));
    this.at += mark.length;
  }

  /** What stands behind an open mark becomes the element's. */
  end(opener, node) {
    this.flush();
    for (const child of this.out.splice(opener.at).slice(1)) node.append(child);
    this.out.push(node);
    this.open.length = this.open.indexOf(opener);
  }

  code() {
    const length = this.match(/`+/y)[0].length, run = this.ticks.get(length);
    while (run?.starts[run.next] <= this.at) ++run.next;
    const end = run?.starts[run.next];
    if (end === undefined) return this.take(length);  // none closes it, or an escape has cut it
    const inner = this.text.slice(this.at + length, end).replaceAll("\n", " ");
    const padded = inner.length > 2 && inner.startsWith(" ") && inner.endsWith(" ");
    this.push(element("code", { textContent: padded ? inner.slice(1, -1) : inner }));
    this.at = end + length;
  }

  emphasis(character) {
    const run = this.match(/\*+|_+|~+/y)[0].length;
    const before = this.text[this.at - 1] ?? " ", after = this.text[this.at + run] ?? " ", inWord = character === "_";
    const opens = /\S/.test(after) && !(inWord && isWord(before)) && (character !== "~" || run === 2);
    const closes = /\S/.test(before) && !(inWord && isWord(after));
    for (let left = run; left > 0;) {
      const opener = closes && this.open.findLast(({ mark }) => mark[0] === character);
      if (opener && opener.mark.length <= left && (this.plain || this.out.length > opener.at + 1)) {
        this.end(opener, element(character === "~" ? "del" : opener.mark.length === 2 ? "strong" : "em"));
        this.at += opener.mark.length;
        left -= opener.mark.length;
      } else if (opens && this.open.length < kMostOpen) {
        const mark = character.repeat(Math.min(left, 2));
        this.begin(mark);
        left -= mark.length;
      } else {
        this.take(left);
        left = 0;
      }
    }
  }

  link() {
    const opener = this.open.findLast(({ mark }) => mark.endsWith("["));
    ++this.at;
    const target = opener && this.match(kTarget);
    const link = target && linkTo(target[1]);
    if (!link) {
      this.plain += "]";
      return;
    }
    this.end(opener, link);
    for (const inner of link.querySelectorAll("a")) inner.replaceWith(...inner.childNodes);
    for (const outer of this.open) if (outer.mark.endsWith("[")) outer.mark = "";  // a link holds no other
    if (!link.textContent) link.textContent = link.href;
    this.at += target[0].length;
  }

  /** An address as it stands, without what ends a sentence. */
  address() {
    const found = !isWord(this.text[this.at - 1] ?? " ") && this.match(/https?:\/\/[^\s<>"'`[\]]{1,2000}/y);
    if (!found) return false;
    let length = found[0].length;
    const isEnd = (c) => ".,;:!?*_~".includes(c) || (c === ")" && !found[0].includes("("));
    while (isEnd(found[0][length - 1])) --length;
    const link = linkTo(found[0].slice(0, length));
    if (!link) return false;
    link.textContent = found[0].slice(0, length);
    this.push(link);
    this.at += length;
    return true;
  }
}

const filled = (node, text) => {
  for (const child of new Inline(text).nodes()) node.append(child);
  return node;
};

// ---- blocks ------------------------------------------------------------------------------------------------------------

const isBlank = (line) => !line.trim();
const indentOf = (line) => line.length - line.trimStart().length;

/** The cells of a table's row; null if it has too many, or none is divided from another. */
function cellsOf(line) {
  const cells = [""];
  let inCode = false;
  for (let i = 0; i < line.length; ++i) {
    if (line[i] === "`") inCode = !inCode;
    if (line[i] === "\\" && line[i + 1] === "|") cells[cells.length - 1] += line[++i];
    else if (line[i] === "|" && !inCode) cells.push("");
    else cells[cells.length - 1] += line[i];
  }
  if (cells.length < 2 || cells.length > kMostColumns) return null;
  if (isBlank(cells[0])) cells.shift();
  if (cells.length && isBlank(cells.at(-1))) cells.pop();
  return cells.map((cell) => cell.trim());
}

const isDivider = (line) => line?.includes("-") && cellsOf(line)?.every((cell) => /^:?-+:?$/.test(cell));
const isTable = (lines, i) => lines[i].includes("|") && isDivider(lines[i + 1]) &&
  cellsOf(lines[i])?.length === cellsOf(lines[i + 1]).length;

/** A number begins a list within a paragraph only if it is 1: "in\n2020. Then" is a sentence. */
const startsBlock = (lines, i) => kFence.test(lines[i]) || kHeading.test(lines[i]) || kQuote.test(lines[i]) ||
  kRule.test(lines[i]) || /^ {0,3}(?:[-*+]|1[.)])[ \t]+\S/.test(lines[i]) || isTable(lines, i);

class Blocks {
  /** `ranks`: the headings that the next one stands below. */
  constructor(lines, ranks, depth = 0) {
    Object.assign(this, { lines, ranks, depth, at: 0 });
  }

  /** The next block's element; null at the end. */
  next() {
    while (this.at < this.lines.length && isBlank(this.lines[this.at])) ++this.at;
    if (this.at >= this.lines.length) return null;
    const line = this.lines[this.at], isFlat = this.depth >= kDeepest;
    if (kFence.test(line)) return this.fence();
    if (kHeading.test(line)) return this.heading();
    if (kRule.test(line)) return ++this.at, element("hr");
    if (kQuote.test(line) && !isFlat) return this.quote();
    if (kItem.test(line) && !isFlat) return this.list();
    if (isTable(this.lines, this.at)) return this.table();
    return this.paragraph();
  }

  all(node) {
    for (let child; (child = this.next());) node.append(child);
    return node;
  }

  within(lines, node) {
    return new Blocks(lines, this.ranks, this.depth + 1).all(node);
  }

  fence() {
    const [opening, mark, about] = this.lines[this.at++].match(kFence), indent = indentOf(opening), code = [];
    const ends = (line) => line.trim().length >= mark.length && line.trim() === mark[0].repeat(line.trim().length);
    while (this.at < this.lines.length && !ends(this.lines[this.at])) {
      const line = this.lines[this.at++];
      code.push(line.slice(Math.min(indent, indentOf(line))));
    }
    ++this.at;
    return codeBlock(code.join("\n"), about.trim().split(/\s/)[0].slice(0, 30));
  }

  /** Levels as a reader of screens wants them: the first is 3, one below the message's own; none is left out. */
  heading() {
    const [, { length: rank }, words = ""] = this.lines[this.at++].match(kHeading);
    while (this.ranks.length && this.ranks.at(-1) >= rank) this.ranks.pop();
    this.ranks.push(rank);
    let text = words.trimEnd(), end = text.length;
    while (text[end - 1] === "#") --end;
    if (end < text.length && (end === 0 || text[end - 1] === " ")) text = text.slice(0, end).trimEnd();
    return filled(element("h" + Math.min(6, 2 + this.ranks.length)), text);
  }

  quote() {
    const inner = [];
    for (; this.at < this.lines.length && !isBlank(this.lines[this.at]); ++this.at) {
      const line = this.lines[this.at];
      if (!kQuote.test(line) && startsBlock(this.lines, this.at)) break;
      inner.push(line.replace(kQuote, ""));
    }
    return this.within(inner, element("blockquote"));
  }

  list() {
    const [, { length: base }, marker] = this.lines[this.at].match(kItem), isOrdered = /\d/.test(marker);
    const list = element(isOrdered ? "ol" : "ul");
    if (isOrdered) list.start = parseInt(marker, 10);
    let isLoose = false;
    const follows = (line) => {
      const found = line?.match(kItem);
      return found && found[1].length >= base && /\d/.test(found[2]) === isOrdered && !kRule.test(line);
    };
    while (follows(this.lines[this.at])) {
      const body = this.item(base);
      isLoose ||= body.some((line, i) => isBlank(line) && i + 1 < body.length);
      list.append(this.within(body, element("li")));
      let blank = this.at;
      while (blank < this.lines.length && isBlank(this.lines[blank])) ++blank;
      if (blank === this.at || !follows(this.lines[blank])) continue;
      isLoose = true;
      this.at = blank;
    }
    if (!isLoose) for (const text of list.querySelectorAll(":scope > li > p")) text.replaceWith(...text.childNodes);
    return list;
  }

  /** The lines of one item, without its marker and their indentation. */
  item(base) {
    const first = this.lines[this.at++], [whole, indent, marker, space] = first.match(kItem);
    const width = indent.length + marker.length + (space.length > 4 ? 1 : space.length || 1);
    const least = Math.min(width, base + 2), body = [first.slice(Math.min(width, whole.length))];
    body[0] = body[0].replace(/^\[([ xX])\] /, (_, mark) => (mark === " " ? "☐ " : "☑ "));
    for (; this.at < this.lines.length; ++this.at) {
      const line = this.lines[this.at];
      if (isBlank(line)) {
        const next = this.lines.slice(this.at, this.at + 3).find((later) => !isBlank(later));
        if (next === undefined || indentOf(next) < least) break;
      } else if (indentOf(line) < least) {
        if (isBlank(this.lines[this.at - 1]) || kItem.test(line) || startsBlock(this.lines, this.at)) break;
      }
      body.push(line.slice(Math.min(indentOf(line), width)));
    }
    return body;
  }

  table() {
    const side = (cell) => (!cell.endsWith(":") ? "" : cell.startsWith(":") ? "center" : "right");
    const sides = cellsOf(this.lines[this.at + 1]).map(side);
    const row = (line, name) => {
      const made = element("tr");
      for (const [column, cell] of cellsOf(line).slice(0, sides.length).entries()) {
        made.append(filled(element(name, { className: sides[column] }), cell));
      }
      return made;
    };
    const head = element("thead", {}, row(this.lines[this.at], "th")), body = element("tbody");
    for (this.at += 2; this.at < this.lines.length && cellsOf(this.lines[this.at]); ++this.at) {
      body.append(row(this.lines[this.at], "td"));
    }
    return element("div", { className: "wide-table", tabIndex: 0 }, element("table", {}, head, body));
  }

  paragraph() {
    const lines = [this.lines[this.at++].trim()];
    while (this.at < this.lines.length && !isBlank(this.lines[this.at]) && !startsBlock(this.lines, this.at)) {
      lines.push(this.lines[this.at++].trim());
    }
    return filled(element("p"), lines.map((line) => line.replace(/\\$/, "")).join("\n"));
  }
}

/** A function that shows a growing text in `root`. Blocks before the last are final, so only the last is made anew. */
export function markdownIn(root) {
  let from = 0, kept = 0, ranks = [];
  return (text) => {
    const blocks = new Blocks(text.slice(from).split("\n"), [...ranks]);
    while (root.childNodes.length > kept) root.lastChild.remove();
    for (let begin = 0; ;) {
      const before = [...blocks.ranks];
      while (blocks.at < blocks.lines.length && isBlank(blocks.lines[blocks.at])) ++blocks.at;
      const first = blocks.at, node = blocks.next();
      if (!node) break;
      root.append(node);
      for (; begin < first; ++begin) from += blocks.lines[begin].length + 1;
      kept = root.childNodes.length - 1;
      ranks = before;
    }
  };
}
