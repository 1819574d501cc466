// Chromium without a window, for the tests of pages. Wants puppeteer-core, @sparticuz/chromium and axe-core from npm in `folder`
// (./dev page installs them).
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

let axe = "";

/** A browser, a page of it, and the list to which the page's errors go. */
export async function openBrowser(folder, viewport) {
  const require = createRequire(folder + "/");
  const chromium = (await import(require.resolve("@sparticuz/chromium"))).default;
  axe = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
  const browser = await require("puppeteer-core").launch({
    args: [...chromium.args, "--no-sandbox"],
    executablePath: await chromium.executablePath(),
    headless: "shell",
  });
  const page = await browser.newPage();
  const wrong = [];
  page.on("pageerror", (error) => wrong.push(String(error)));
  page.on("console", (message) => message.type() === "error" && wrong.push(message.text()));
  await page.setViewport(viewport);
  return { browser, page, wrong };
}

/** No finding of axe-core in the page as it stands, neither light nor dark. `name` says what stands there. */
export async function checkAccess(page, name) {
  const before = await page.evaluate(() => matchMedia("(prefers-color-scheme: dark)").matches);
  for (const value of ["light", "dark"]) {
    await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value }]);
    await page.evaluate(axe);
    const found = await page.evaluate(async () => (await window.axe.run()).violations.flatMap(({ id, nodes }) =>
      nodes.map(({ html, failureSummary }) => `${id}: ${html.slice(0, 200)}: ${failureSummary}`)));
    assert.deepEqual(found, [], `${name}, ${value}: expected nothing that axe-core finds`);
  }
  await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: before ? "dark" : "light" }]);
}
