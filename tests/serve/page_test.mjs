// The server's page in a browser without a window: what a person who keeps it open all day does with it.
//
//     node page_test.mjs FOVEA PICTURES_DIR    the built program; where pictures go, to be looked at
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdirSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { checkAccess, openBrowser } from "../support/browser.mjs";
import { driver } from "./page_driver.mjs";
import { checkAnyText, checkGrowth } from "./page_markdown.mjs";

const [fovea, pictures] = process.argv.slice(2);
const encoder = fileURLToPath(new URL("../golden/encoders/bert_sentence", import.meta.url));
const demo = fileURLToPath(new URL("../../tools/demo/demo.fovea", import.meta.url));
mkdirSync(pictures, { recursive: true });

async function serve(...args) {
  const server = spawn(fovea, ["serve", ...args, "--port", "0", "--context", "256"], { stdio: ["ignore", "pipe", "pipe"] });
  const address = await new Promise((resolve, reject) => {
    let said = "";
    const hear = (bytes) => {
      said += bytes;
      const found = said.match(/http:\/\/127\.0\.0\.1:\d+/);
      if (found) resolve(found[0]);
    };
    server.stdout.on("data", hear);
    server.stderr.on("data", hear);
    server.on("exit", (status) => reject(new Error(`the server: expected it to run, got status ${status}: ${said}`)));
  });
  const stop = () => {
    server.removeAllListeners("exit");
    server.kill("SIGTERM");
  };
  return { address, stop };
}

const server = await serve("demo=", "twin=" + demo, "minilm=" + encoder);
const { browser, page, wrong } = await openBrowser(pictures, { width: 1000, height: 700 });
const foreign = [];
page.on("request", (request) => {
  const isOwn = /^(data|blob):/.test(request.url()) || request.url().startsWith(server.address);
  if (!isOwn) foreign.push(request.url());
});
let dialogs = (dialog) => dialog.accept();
page.on("dialog", (dialog) => dialogs(dialog));

const { all, begin, count, fresh, idle, listen, piece, press, send, sent, set, speak, text, until } = driver(page);
const picture = (name) => page.screenshot({ path: `${pictures}/${name}.png` });

// ---- what must be so ---------------------------------------------------------------------------------------------------

const scenes = {
  async "an empty page says which model this is, and an encoder is not offered (C5)"() {
    await page.goto(server.address);
    await page.waitForSelector(".prompts button");
    assert.deepEqual(await all("#model option"), ["demo", "twin"]);
    assert.equal(await text(".welcome h2"), "demo");
    const facts = (await all(".welcome dl div")).join("; ");
    assert.match(facts, /^Familyllama; Size[\d.]+ [KM]B; Context256 tokens; Memory[\d.]+ [KM]B beside the model$/);
    assert.equal(await count(".prompts button"), 3);
    await picture("empty");
    await page.click(".prompts li:nth-child(2) button");
    await idle();
    assert.deepEqual(await all("article .body"), ["play jazz", '{"do":"play","what":"jazz"}']);
    const cost = /^\d+ tokens read, \d+ written · [\d.,]+ m?s · first after [\d.,]+ m?s · [\d.,]+ tokens a second$/;
    assert.match(await text(".cost"), cost);
    assert.match(await text("#hint"), /^\d+ of 256 tokens of context$/);
    await picture("answer");
  },

  async "attention of an answer"() {
    const attended = () => until(() => / looks at /.test(document.querySelector(".looks")?.textContent ?? ""));
    const shares = () => page.$$eval(".tokens button", (found) => found.map((b) => Number(b.style.getPropertyValue("--share"))));
    const elsewhere = (before) => until((old) => [...document.querySelectorAll(".tokens button")]
      .some((b, i) => Number(b.style.getPropertyValue("--share")) !== old[i]), before);
    await press("Attention");
    await attended();
    // As many tokens as the server counts (an end token is counted, and no text), the last chosen, all it looks at adding up.
    const [read, written] = (await text(".cost")).match(/\d+/g).map(Number), n = await count(".tokens button");
    assert.ok(Math.abs(n - read - written) <= 1);
    assert.equal(await count(".tokens .answer"), n - read);
    assert.equal(await page.$eval(".tokens button:last-child", (button) => button.getAttribute("aria-pressed")), "true");
    assert.equal(Math.max(...(await shares())), 1);
    const percent = await page.$$eval(".tokens button", (found) => found.map((b) => parseFloat(b.title) || 0));
    assert.ok(Math.abs(percent.reduce((a, b) => a + b) - 100) < 3, `percents: expected 100 together, got ${percent}`);
    await picture("attention");
    await checkAccess(page, "attention");
    // Another layer and head look elsewhere. Keys go from token to token; pointing at the picture chooses a row and tells a cell.
    const mean = await shares();
    await page.select(".layer", "1");
    await elsewhere(mean);
    const layer = await shares();
    await page.select(".head", "2");
    await elsewhere(layer);
    await page.focus(".tokens [aria-pressed=true]");
    await page.keyboard.press("Home");
    assert.match(await text(".looks"), / 100\.0 %$/);  // the first token sees itself alone
    await page.keyboard.press("ArrowRight");
    assert.equal(await page.$eval(".tokens button:nth-child(2)", (b) => b === document.activeElement && b.ariaPressed), "true");
    await page.hover(".tokens button:nth-child(5)");
    assert.deepEqual((await shares()).slice(5), (await shares()).slice(5).map(() => 0), "later tokens are not looked at");
    await page.$eval(".map", (map) => map.scrollIntoView());
    const box = await (await page.$(".map")).boundingBox();
    await page.mouse.move(box.x + (0.5 * box.width) / n, box.y + (2.5 * box.height) / n);
    assert.equal(await page.$eval(".tokens button:nth-child(3)", (b) => b.ariaPressed), "true");
    await press("Attention");
    assert.equal(await count(".attention"), 0);
  },

  async "a new conversation starts clean, while the old one's answer is written (C1)"() {
    await speak(["one ", "two ", "three"], false);
    await fresh();
    await begin("count");
    await until(() => window.piece);
    await piece(1);
    await until(() => document.querySelector(".assistant .body").textContent.includes("one"));
    await picture("streaming");
    await fresh();
    await piece(2);
    await until(() => !document.querySelector("#list").textContent.includes("writing"));
    assert.equal(await count("article"), 0);
    await speak(["fine"]);
    await send("how are you");
    assert.deepEqual((await sent()).messages, [{ role: "user", content: "how are you" }]);
    await page.click("#list li:nth-child(2) .open");
    assert.deepEqual(await all("article .body"), ["count", "one two three"]);
  },

  async "scrolling up holds while text streams (C2)"() {
    const lines = Array.from({ length: 200 }, (_, i) => `Line ${i}.\n\n`);
    await speak(lines, false);
    await fresh();
    await begin("lines");
    await until(() => document.querySelector("main.running"));
    const place = () => page.$eval("main", (main) => [main.scrollTop, main.scrollHeight - main.scrollTop - main.clientHeight]);
    const grown = (n) => until((words) => document.querySelector(".assistant .body").textContent.includes(words),
      `Line ${n - 1}.`);
    await piece(60);
    await grown(60);
    assert.ok((await place())[1] < 8, "the end: expected in sight while nobody scrolls");
    await page.hover("main");
    await page.mouse.wheel({ deltaY: -300 });
    await until(() => !document.querySelector("#to-end").hidden);
    const [held] = await place();
    await piece(60);
    await grown(120);
    assert.ok(Math.abs((await place())[0] - held) < 2, "a text that was scrolled to: expected it to stay");
    await picture("scrolled");
    await page.click("#to-end");
    await piece(40);
    await grown(160);
    assert.ok((await place())[1] < 8, "the end: expected in sight again");
    await piece(100);
    await idle();
  },

  async "a reload keeps everything; names, search, export, deletion (C3)"() {
    await speak(["**kept** for ever"]);
    await fresh();
    await set({ system: "Be brief." });
    await send("remember me");
    await page.focus("#text");
    await page.keyboard.sendCharacter("half a thought");
    const listed = await all("#list .open span");
    await page.reload();
    await page.waitForSelector(".assistant strong");
    assert.deepEqual(await all("#list .open span"), listed);
    assert.deepEqual(await all("article .body"), ["remember me", "kept for ever"]);
    assert.equal(await page.$eval("#text", (area) => area.value), "half a thought");
    await page.$eval("#text", (area) => (area.value = ""));
    await press("Rename");
    await page.keyboard.sendCharacter("Keepsakes");
    await page.keyboard.press("Enter");
    await page.reload();
    await until(() => document.querySelector("#title").textContent === "Keepsakes");
    await page.type("#search", "for EVER");
    assert.deepEqual(await all("#list .open span"), ["Keepsakes"]);
    await page.$eval("#search", (input) => (input.value = "", input.dispatchEvent(new Event("input"))));
    await page.evaluate(() => (URL.createObjectURL = (blob) => (window.saved = blob, "data:,")));
    await press("Export");
    assert.equal(await page.evaluate(() => window.saved.text()),
      "# Keepsakes\n\n## System\n\nBe brief.\n\n## You\n\nremember me\n\n## demo\n\n**kept** for ever\n");
    await press("Export all");
    assert.equal(JSON.parse(await page.evaluate(() => window.saved.text())).conversations.length, listed.length);
    dialogs = (dialog) => dialog.dismiss();
    await press("Delete");
    assert.equal(await count("#list li"), listed.length);
    dialogs = (dialog) => dialog.accept();
    await press("Delete");
    await page.reload();
    await page.waitForSelector(".prompts");
    assert.ok(!(await all("#list .open span")).includes("Keepsakes"));
    assert.equal(await count("#list li"), listed.length - 1);
  },

  async "two tabs show the same, and a full storage is told"() {
    const other = await browser.newPage();
    await other.goto(server.address);
    await other.waitForSelector(".prompts");
    await speak(["here"]);
    await page.bringToFront();
    await fresh();
    await send("said in one tab");
    await other.waitForFunction(() => document.querySelector("#list").textContent.includes("said in one tab"));
    await other.close();
    await page.evaluate(() => {
      const set = Storage.prototype.setItem;
      Storage.prototype.setItem = () => { throw new DOMException("full", "QuotaExceededError"); };
      window.restore = () => (Storage.prototype.setItem = set);
    });
    await send("more");
    assert.match(await text("#notice"), /^The browser's storage is full/);
    assert.equal(await count("article"), 4);
    await page.evaluate(() => window.restore());
    await send("again");
  },

  async "an error loses no text (C4)"() {
    await page.reload();
    await page.waitForSelector("#model option");
    await fresh();
    const long = "word ".repeat(600).trim();
    await send(long);
    assert.match(await text(".error"), /messages: expected at most 255 tokens/);
    assert.equal(await text(".user .body"), long);
    const seen = await page.evaluate(() => {
      const [error, form] = [".error", "#form"].map((selector) => document.querySelector(selector).getBoundingClientRect());
      return error.bottom <= form.top;
    });
    assert.ok(seen, "an error: expected in sight, got one below the window's edge");
    await page.reload();
    await page.waitForSelector(".error");
    assert.equal(await text(".user .body"), long);
    // A server that is gone, in the middle of an answer; it is asked again, and the first text stays beside the new one.
    await fresh();
    await speak(["half an ", "answer"], false);
    await begin("tell me");
    await until(() => window.sent.length);
    await piece(1);
    await until(() => document.querySelector(".assistant .body").textContent === "half an");
    await page.reload();
    await page.waitForSelector(".assistant .hint");
    assert.equal(await text(".assistant .body"), "half an");
    assert.match(await text(".assistant .hint"), /^The page was closed before/);
    await page.evaluate(() => {
      window.ask = window.fetch;
      window.fetch = async () => { throw new TypeError("Failed to fetch"); };
    });
    await press("Regenerate");
    await page.waitForSelector(".error");
    assert.equal(await text(".error"), "The server does not answer: Failed to fetch");
    assert.equal(await text(".user .body"), "tell me");
    await picture("error");
    await checkAccess(page, "error");
    await speak(["whole"]);
    await press("Try again");
    await idle();
    assert.deepEqual(await all("article .body"), ["tell me", "whole"]);
    await speak(["half", { error: { message: "server: it is stopping" } }]);
    await press("Regenerate");
    await idle();
    assert.deepEqual([await text(".assistant .body"), await text(".error")], ["half", "server: it is stopping"]);
    await page.click(".assistant [aria-label='Previous version']");
    // What got no answer is not sent with what comes next.
    await speak([]);
    await send("unanswered");
    await speak(["yes"]);
    await send("answered");
    assert.deepEqual((await sent()).messages.map(({ content }) => content), ["tell me", "whole", "answered"]);
  },

  async "a message is edited, an answer asked for again, and stopped; every version stays"() {
    await speak(["first"]);
    await fresh();
    await send("question");
    await speak(["second"]);
    await press("Regenerate");
    await idle();
    assert.deepEqual([await text(".assistant .body"), await text(".assistant .versions")], ["second", "‹ 2 of 2 ›"]);
    assert.equal((await sent()).seed, 1);
    assert.equal(await page.evaluate(() => document.activeElement.id), "text");
    await page.click("[aria-label='Previous version']");
    assert.equal(await text(".assistant .body"), "first");
    assert.equal(await page.evaluate(() => document.activeElement.ariaLabel), "Next version");
    await speak(["third"]);
    await press("Edit");
    await page.keyboard.down("Control");
    await page.keyboard.press("a");
    await page.keyboard.up("Control");
    await page.keyboard.sendCharacter("better question");
    await page.keyboard.press("Enter");
    await idle();
    assert.deepEqual((await sent()).messages, [{ role: "user", content: "better question" }]);
    assert.deepEqual(await all("article .body"), ["better question", "third"]);
    await page.click(".user [aria-label='Previous version']");
    assert.deepEqual(await all("article .body"), ["question", "second"]);
    await press("Edit");
    await page.keyboard.press("Escape");
    assert.equal(await page.evaluate(() => document.activeElement.textContent), "Edit");
    await speak(["so ", "far"], false);
    await begin("go on");
    await until(() => window.sent.length);
    await piece(1);
    await until(() => document.querySelector("article:last-child .body").textContent.includes("so"));
    await press("Stop");
    await idle();
    assert.equal(await text("article:last-child .body p"), "so");
    assert.match(await text("article:last-child .foot"), /^Stopped\./);
  },

  async "another model answers the same message, and a reload keeps the choice"() {
    await listen();
    await fresh();
    await send("play jazz");
    await page.select("#model", "twin");
    await press("Regenerate");
    await idle();
    assert.deepEqual(await all("article h2"), ["You", "twin"]);
    assert.equal(await text(".assistant .versions"), "‹ 2 of 2 ›");
    await page.reload();
    await page.waitForSelector("#model option");
    await fresh();
    assert.equal(await text(".welcome h2"), "twin");
    await page.select("#model", "demo");
    assert.equal(await text(".welcome h2"), "demo");
  },

  async "settings go with requests by their names; a schema; reasoning is folded and goes back"() {
    await speak([{ reasoning_content: "It is " }, { reasoning_content: "late." }, "Good ", "night."]);
    await fresh();
    await set({ system: "Be kind.", "field-temperature": "0.25", "field-top_k": "40", more: '{"dry_multiplier": 0.8}' });
    await send("hello");
    const { messages, temperature, top_k, dry_multiplier, top_p } = await sent();
    assert.deepEqual([temperature, top_k, dry_multiplier, top_p], [0.25, 40, 0.8, undefined]);
    assert.deepEqual(messages, [{ role: "system", content: "Be kind." }, { role: "user", content: "hello" }]);
    assert.equal(await text("#hint"), "temperature 0.25, top_k 40, more fields, a system text");
    assert.equal(await text(".assistant details"), "ReasoningIt is late.");
    assert.equal(await page.$eval(".assistant details", (details) => details.open), false);
    await send("and now");
    assert.deepEqual((await sent()).messages[2], { role: "assistant", content: "Good night.", reasoning_content: "It is late." });
    await page.click("#settings");
    await page.$eval("#schema", (area) => (area.value = "{", area.dispatchEvent(new Event("input", { bubbles: true }))));
    await press("Done", "dialog");
    assert.equal(await page.$eval("dialog", (dialog) => dialog.open), true, "a schema that is no JSON: expected to be told");
    await press("Empty all fields", "dialog");
    await picture("settings");
    await checkAccess(page, "settings");
    await press("Done", "dialog");
    await listen();
    await fresh();
    await set({ schema: JSON.stringify({ type: "object", properties: { room: { enum: ["hall"] } }, required: ["room"],
      additionalProperties: false }) });
    await send("is the front door locked");
    assert.deepEqual(JSON.parse(await text(".assistant code")), { room: "hall" });
    await fresh();
    assert.equal(await text("#hint"), "Enter sends, Shift and Enter begin a line.");
  },

  async "Markdown, and hostile text stays text"() {
    const script = '<script>window.hit = 1</script> <img src=x onerror="window.hit = 1"> [a](javascript:window.hit=1)';
    await speak(["# Head\n\nSome **bold**, *thin* and `code`.\nA line.\n\n1. one\n2. two\n   - inner\n\n",
      '| a | b |\n|---|--:|\n| 1 | 2 |\n\n> said\n\n```python\nprint("<b>")\n```\n\n',
      "[link](https://example.org/x) and https://example.org/y.\n\n",
      script, " [b](data:text/html,x) [c](//evil.example/) ![d](https://evil.example/pixel.png)"]);
    await fresh();
    await send("show");
    const inside = (selector) => all(".assistant .body " + selector);
    const shown = { h3: "Head", strong: "bold", em: "thin", "p > code": "code", "ol > li > ul > li": "inner", "td.right": "2",
      "blockquote p": "said", "pre code": 'print("<b>")', ".code-head span": "python" };
    for (const [selector, words] of Object.entries(shown)) assert.deepEqual(await inside(selector), [words], selector);
    assert.deepEqual(await page.$$eval(".body a", (links) => links.map((a) => `${a.href} ${a.rel}`)),
      ["https://example.org/x", "https://example.org/y", "https://evil.example/pixel.png"]
        .map((to) => to + " noopener noreferrer nofollow"));
    assert.ok((await inside("p")).at(-1).startsWith(script));
    assert.deepEqual([await inside("script, img"), await page.evaluate(() => window.hit)], [[], undefined]);
    await page.evaluate(() => (navigator.clipboard.writeText = async (words) => { window.copied = words; }));
    await press("Copy", ".code-block");
    assert.equal(await page.evaluate(() => window.copied), 'print("<b>")');
    await picture("markdown");
    await checkAccess(page, "markdown");
    // Text made to be slow is shown in time, whatever it is, and whole: nothing but marks is lost.
    for (const each of ["*a_ ", "[", "](", "`", "> ", "- ", "|", "<br>", "![", "**", "[a](b", "1. ", "#", "~~"]) {
      const [took, kept] = await page.evaluate(async (words) => {
        const { markdownIn } = await import("/page/markdown.js"), root = document.createElement("div"), begun = performance.now();
        markdownIn(root)(words.repeat(100000 / words.length) + "end");
        return [performance.now() - begun, root.textContent.includes("end")];
      }, each);
      assert.ok(took < 5000 && kept, `${each}: expected soon and whole, got ${took} ms`);
    }
    await speak(["```\n" + "code ".repeat(100000) + "\n```"]);
    await send("huge");
    assert.equal(await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth), 0);
  },

  "text that grows is shown as text that came at once": () => checkGrowth(page),
  "any text becomes elements of Markdown alone, whole or piece by piece": () => checkAnyText(page),

  async "a telephone's window, at night"() {
    await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: "dark" }]);
    await page.setViewport({ width: 360, height: 640 });
    await page.reload();
    await page.waitForSelector("#model option");
    await page.click("#open-side");
    await picture("phone_list");
    await checkAccess(page, "phone_list");
    await page.click("#new");
    await picture("phone_empty");
    await checkAccess(page, "phone_empty");
    await send("play jazz");
    await press("Attention");
    await page.waitForSelector(".tokens .answer");
    await picture("phone");
    const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
    assert.equal(wide, 0, "a narrow window: expected nothing beyond its edge");
    const header = await page.$eval("header", (element) => element.getBoundingClientRect().height);
    assert.ok(header <= 60, `a narrow window: expected controls in one line, got ${header} pixels`);
    const room = () => page.$eval("#text", (area) => area.clientHeight - area.scrollHeight);
    const low = await page.$eval("#text", (area) => area.clientHeight);
    await page.type("#text", "a message of several lines ".repeat(4));
    const high = await page.$eval("#text", (area) => area.clientHeight);
    assert.ok(high > low && (await room()) >= 0, "a long message: expected all of it to show");
    await page.setViewport({ width: 1000, height: 700 });
    await page.click("#list li:nth-child(2) .open");
    await picture("dark");
    await checkAccess(page, "dark");
    await page.click("#new");
    await picture("dark_empty");
    await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: "light" }]);
  },

  async "keys alone go everywhere in order"() {
    await page.waitForSelector(".prompts button");
    await page.focus("#model");
    const order = [];
    for (let i = 0; i < 7; ++i) {
      await page.keyboard.press("Tab");
      order.push(await page.evaluate(() => document.activeElement.id || document.activeElement.textContent));
    }
    assert.deepEqual(order, ["settings", "talk", "turn on the reading lamp", "play jazz", "wake me up at 7 am", "text", "send"]);
    await page.focus("#settings");
    for (const key of ["Enter", "Escape"]) await page.keyboard.press(key);
    assert.equal(await page.evaluate(() => document.activeElement.id), "settings");
  },

  async "a key is asked for; a server without a model that chats says so"() {
    const locked = await serve("minilm=" + encoder, "--api-key", "secret");
    const asked = [];
    dialogs = (dialog) => (asked.push(dialog.message()), dialog.accept("secret"));
    const own = await browser.newPage();
    own.on("dialog", (dialog) => dialogs(dialog));
    await own.goto(locked.address);
    await own.waitForSelector(".welcome .error");
    assert.deepEqual(asked, ["This server wants an API key:"]);
    const told = await own.$eval(".welcome .error", (found) => found.textContent);
    assert.equal(told, "No model here chats: minilm is for embedding.");
    assert.equal(await own.$eval("#send", (button) => button.disabled), true);
    await own.close();
    locked.stop();
  },
};

let failed = 0;
try {
  for (const [name, scene] of Object.entries(scenes)) {
    await scene();
    assert.deepEqual(wrong.filter((line) => !line.includes("status of 400")), [], name);
    console.log("page: " + name);
  }
  assert.deepEqual(foreign, [], "requests: expected to this server alone");
} catch (error) {
  failed = 1;
  console.error(error);
  await picture("failed");
} finally {
  await browser.close();
  server.stop();
}
process.exit(failed);
