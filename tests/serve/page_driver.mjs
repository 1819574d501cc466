// What a person does with the server's page, for its test; and answers in place of the server's.
import assert from "node:assert/strict";

export function driver(page) {
  const text = (selector) => page.$eval(selector, (found) => found.textContent);
  const all = (selector) => page.$$eval(selector, (found) => found.map((each) => each.textContent));
  const count = (selector) => page.$$eval(selector, (found) => found.length);
  const until = (test, ...args) => page.waitForFunction(test, {}, ...args);
  const idle = () => until(() => !document.querySelector("main.running") &&
    document.querySelector("#send").textContent === "Send");
  const press = (name, within = "body") => page.evaluate((words, selector) => {
    const found = [...document.querySelectorAll(selector + " button")]
      .filter((button) => button.textContent === words && button.checkVisibility());
    if (!found.length) throw new Error("no button " + words);
    found.at(-1).click();
  }, name, within);
  const begin = async (message) => {
    await page.focus("#text");
    await page.keyboard.sendCharacter(message);
    await page.keyboard.press("Enter");
  };
  const send = async (message) => {
    await begin(message);
    await idle();
  };
  const fresh = async () => {
    await page.click("#new");
    assert.equal(await count("article"), 0);
  };
  const set = async (fields) => {
    await page.click("#settings");
    for (const [id, value] of Object.entries(fields)) {
      await page.$eval("#" + id, (field, words) => {
        field.value = words;
        field.dispatchEvent(new Event("input", { bubbles: true }));
      }, value);
    }
    await press("Done", "dialog");
  };

  /** Answers in place of the server's: the page's next requests get these pieces, each when `piece` is called or all at once. */
  const speak = (pieces, together = true) => page.evaluate((list, atOnce) => {
    window.ask ??= window.fetch;
    window.sent = [];
    window.fetch = async (path, options) => {
      if (path !== "v1/chat/completions") return window.ask(path, options);
      window.sent.push(JSON.parse(options.body));
      const bytes = new TextEncoder(), left = [...list];
      const body = new ReadableStream({
        start(stream) {
          window.piece = (n = 1) => {
            for (; n > 0 && left.length; --n) {
              const delta = left.shift(), event = delta.error ? delta : { choices: [{ delta }] };
              stream.enqueue(bytes.encode(`data: ${JSON.stringify(event)}\n\n`));
            }
            if (left.length) return;
            stream.enqueue(bytes.encode(": a comment\n\ndata: [DONE]\n\n"));
            stream.close();
          };
          options.signal.addEventListener("abort", () => stream.error(options.signal.reason));
          if (atOnce) window.piece(left.length);
        },
      });
      return new Response(body);
    };
  }, pieces.map((piece) => (typeof piece === "string" ? { content: piece } : piece)), together);
  const piece = (n) => page.evaluate((number) => window.piece(number), n);
  const listen = () => page.evaluate(() => (window.fetch = window.ask));
  const sent = () => page.evaluate(() => window.sent.at(-1));

  return { all, begin, count, fresh, idle, listen, piece, press, send, sent, set, speak, text, until };
}
