// Chromium without a window, for the tests of pages. Wants puppeteer-core and @sparticuz/chromium from npm in `folder`
// (./dev page installs them).
import { createRequire } from "node:module";

/** A browser, a page of it, and the list to which the page's errors go. */
export async function openBrowser(folder, viewport) {
  const require = createRequire(folder + "/");
  const chromium = (await import(require.resolve("@sparticuz/chromium"))).default;
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
