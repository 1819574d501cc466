// Every page of the site in a browser without a window: nothing that axe-core finds, light or dark, nothing from another host, no page
// wider than its window, be that wide or narrow, and a search that finds.
//
//     node site_test.mjs SITE_DIR PICTURES_DIR    the site; where pictures go, to be looked at, with the packages of ./dev page
import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { createServer } from "node:http";
import { extname, join } from "node:path";
import { checkAccess, openBrowser } from "../support/browser.mjs";

const [site, pictures] = process.argv.slice(2);
const kinds = { ".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml" };
const server = createServer((request, response) => {
  const path = join(site, decodeURIComponent(new URL(request.url, "http://site").pathname));
  if (!existsSync(path)) return response.writeHead(404).end();
  response.writeHead(200, { "Content-Type": kinds[extname(path)] ?? "application/octet-stream" }).end(readFileSync(path));
});
await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
const own = `http://127.0.0.1:${server.address().port}/`;
const { browser, page, wrong } = await openBrowser(pictures, { width: 1280, height: 900 });
const foreign = [];
page.on("request", (request) => {
  if (!/^(data|blob):/.test(request.url()) && !request.url().startsWith(own)) foreign.push(request.url());
});
const names = readdirSync(site, { recursive: true }).filter((name) => name.endsWith(".html")).sort();
assert.ok(names.includes("index.html"), `${site}: expected index.html, got ${names.length} pages`);
const at = (name) => own + name;

const failed = [];
const pictured = ["index.html", "figures.html", "docs/attention.html", "docs/results.html", "reference/fovea/session.html"];
for (const name of names) {
  await page.goto(at(name));
  for (const width of [1280, 380]) {
    await page.setViewport({ width, height: 900 });
    const isPictured = pictured.includes(name);
    try {
      if (width === 1280 || isPictured) await checkAccess(page, `${name}, ${width} wide`);
      const over = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      assert.ok(over <= 0, `${name}: expected at most ${width} pixels, got ${over} more`);
    } catch (error) {
      failed.push(error.message);
    }
    if (isPictured) await page.screenshot({ path: `${pictures}/site_${name.replace(/\W/g, "_")}_${width}.png` });
  }
  await page.setViewport({ width: 1280, height: 900 });
}

await page.goto(`${at("search.html")}?q=make_session`);
await page.waitForSelector("#search-results li a");
const found = await page.$$eval("#search-results li a", (links) => links.map((link) => link.getAttribute("href")));
assert.ok(found.some((link) => link.includes("session")), `make_session: expected its header among ${found}`);
await page.screenshot({ path: `${pictures}/site_search.png` });

await browser.close();
server.close();
for (const line of failed) console.error(line);
assert.deepEqual([failed.length, foreign, wrong], [0, [], []]);
console.log(`site: ${names.length} pages: no finding`);
