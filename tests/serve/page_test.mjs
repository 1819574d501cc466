// The server's page in a browser without a window: a conversation, what its answers look at, an error, a narrow window.
//
//     node page_test.mjs FOVEA PICTURES_DIR    the built program; where pictures go, to be looked at
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdirSync } from "node:fs";
import { openBrowser } from "../support/browser.mjs";

const [fovea, pictures] = process.argv.slice(2);
mkdirSync(pictures, { recursive: true });

const server = spawn(fovea, ["serve", "demo=", "--port", "0", "--context", "256"], { stdio: ["ignore", "pipe", "pipe"] });
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
const { browser, page, wrong } = await openBrowser(pictures, { width: 900, height: 700 });

let failed = 0;
try {
  await page.goto(address);
  const text = (selector) => page.$eval(selector, (element) => element.textContent);
  const count = (selector) => page.$$eval(selector, (elements) => elements.length);
  const send = async (message, n_answers) => {
    await page.type("#text", message);
    await page.keyboard.press("Enter");
    await page.waitForFunction((n) => document.querySelectorAll(".assistant .quiet").length === n, {}, n_answers);
  };
  const attended = () => page.waitForFunction(() => / looks at /.test(document.querySelector(".looks")?.textContent ?? ""));

  await page.waitForFunction(() => document.querySelector("#model").options.length === 1);
  assert.equal(await page.$eval("#model", (select) => select.value), "demo");
  await page.$eval("#temperature", (input) => (input.value = "0"));
  await send("play jazz", 1);
  assert.match(await text(".assistant"), /^\{"do":"play","what":"jazz"\}/);
  assert.match(await text(".assistant small"), /^\d+ \+ \d+ tokens, first after \d+ ms, then \d+ a second$/);
  await page.screenshot({ path: pictures + "/answer.png" });

  // Attention: as many tokens as the server counts, the last chosen, all it looks at adding up.
  await page.click(".quiet");
  await attended();
  const [n_prompt, n_new] = (await text(".assistant small")).match(/\d+/g).map(Number);
  assert.ok(Math.abs((await count(".tokens button")) - n_prompt - n_new) <= 1);  // an end token is counted, and no text
  assert.equal(await count(".tokens .answer"), (await count(".tokens button")) - n_prompt);
  assert.equal(await page.$eval(".tokens button:last-child", (button) => button.getAttribute("aria-pressed")), "true");
  const shares = () => page.$$eval(".tokens button", (all) => all.map((b) => Number(b.style.getPropertyValue("--share"))));
  assert.equal(Math.max(...(await shares())), 1);
  const percent = await page.$$eval(".tokens button", (all) => all.map((b) => parseFloat(b.title) || 0));
  assert.ok(Math.abs(percent.reduce((a, b) => a + b) - 100) < 3, `percents: expected 100 together, got ${percent}`);
  await page.screenshot({ path: pictures + "/attention.png", fullPage: true });

  // Another layer and head look elsewhere; the chosen token stays. Keys go from token to token.
  const mean = await shares();
  await page.select(".layer", "1");
  await page.waitForFunction((before) => [...document.querySelectorAll(".tokens button")]
    .some((b, i) => Number(b.style.getPropertyValue("--share")) !== before[i]), {}, mean);
  await attended();
  const layer = await shares();
  await page.select(".head", "2");
  await page.waitForFunction((before) => [...document.querySelectorAll(".tokens button")]
    .some((b, i) => Number(b.style.getPropertyValue("--share")) !== before[i]), {}, layer);
  await page.focus(".tokens [aria-pressed=true]");
  await page.keyboard.press("Home");
  assert.match(await text(".looks"), / 100\.0 %$/);  // the first token sees itself alone
  await page.keyboard.press("ArrowRight");
  assert.equal(await page.$eval(".tokens button:nth-child(2)", (b) => b === document.activeElement && b.getAttribute("aria-pressed")), "true");
  await page.hover(".tokens button:nth-child(5)");
  assert.deepEqual((await shares()).slice(5), (await shares()).slice(5).map(() => 0), "later tokens are not looked at");
  await page.screenshot({ path: pictures + "/head.png", fullPage: true });
  await page.click(".quiet");
  assert.equal(await count(".attention"), 0);

  // A second turn keeps the first; a text too long is told in the page; a new conversation is empty.
  await send("lights off", 2);
  assert.equal(await count("article"), 4);
  assert.deepEqual(wrong, []);
  await page.$eval("#text", (area) => (area.value = "word ".repeat(600)));
  await page.focus("#text");
  await page.keyboard.press("Enter");
  await page.waitForSelector(".failed");
  const seen = await page.$eval(".failed", (article) => article.getBoundingClientRect().bottom <= document.querySelector("form").getBoundingClientRect().top);
  assert.ok(seen, "an error: expected in sight, got one below the window's edge");
  assert.match(await text(".failed"), /messages: expected at most 255 tokens/);
  await page.screenshot({ path: pictures + "/error.png" });
  await page.click("#clear");
  assert.equal(await count("article"), 0);

  // A model that reasons: what it thought is folded above what it says, and goes back with the conversation.
  await page.evaluate(() => {
    const ask = window.fetch;
    window.fetch = async (path, options) => {
      if (path !== "/v1/chat/completions") return ask(path, options);
      window.sent = JSON.parse(options.body).messages;
      const pieces = [{ reasoning_content: "It is " }, { reasoning_content: "late." }, { content: "Good " }, { content: "night." }];
      return new Response(pieces.map((delta) => `data: ${JSON.stringify({ choices: [{ delta }] })}\n\n`).join("") + "data: [DONE]\n\n");
    };
    window.restore = () => (window.fetch = ask);
  });
  await send("hello", 1);
  assert.equal(await text(".assistant details"), "ReasoningIt is late.");
  assert.equal(await page.$eval(".assistant details", (details) => details.open), false);
  assert.match(await text(".assistant"), /^ReasoningIt is late\.Good night\./);
  await send("and now", 2);
  const sent = await page.evaluate(() => window.sent);
  assert.deepEqual(sent[1], { role: "assistant", content: "Good night.", reasoning_content: "It is late." });
  await page.screenshot({ path: pictures + "/reasoning.png" });
  await page.evaluate(() => window.restore());
  await page.click("#clear");

  // A telephone's window, at night: nothing beyond its edge, the controls in two lines, what is to be written not cut.
  await page.setViewport({ width: 360, height: 640 });
  await send("play jazz", 1);
  await page.click(".quiet");
  await attended();
  await page.screenshot({ path: pictures + "/narrow.png" });
  const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
  assert.equal(wide, 0, "a narrow window: expected nothing beyond its edge");
  const header = await page.$eval("header", (element) => element.getBoundingClientRect().height);
  assert.ok(header <= 100, `a narrow window: expected controls in two lines, got ${header} pixels`);
  const room = () => page.$eval("#text", (area) => area.clientHeight - area.scrollHeight);
  assert.ok((await room()) >= 0, "a narrow window: expected room for what the empty message says, got less");
  const low = await page.$eval("#text", (area) => area.clientHeight);
  await page.type("#text", "a message of several lines ".repeat(4));
  assert.ok((await page.$eval("#text", (area) => area.clientHeight)) > low && (await room()) >= 0, "a long message: expected all of it to show");
  await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: "dark" }]);
  await page.screenshot({ path: pictures + "/dark.png" });
  console.log(`page: a conversation, attention, an error, a narrow window; pictures in ${pictures}`);
} catch (error) {
  failed = 1;
  console.error(error);
} finally {
  await browser.close();
  server.removeAllListeners("exit");
  server.kill("SIGTERM");
}
process.exit(failed);
