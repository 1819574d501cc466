// The page of --picture in a browser without a window: every head side by side, one large, its cells by pointing and by keys.
//
//     node picture_page_test.mjs FOVEA PICTURES_DIR    the built program; where pictures go, to be looked at
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { openBrowser } from "../../support/browser.mjs";

const [fovea, pictures] = process.argv.slice(2);
const file = pictures + "/attention.html", array = pictures + "/attention.npy";
execFileSync(fovea, ["run", "-p", "turn off the kitchen lights", "-n", "40", "--layer", "2", "--picture", file,
  "--weights", array, "--per-head"], { stdio: "ignore" });

/** [heads, queries, keys] of an .npy file of float32. */
function readArray(path) {
  const bytes = readFileSync(path), begin = 10 + bytes.readUInt16LE(8);
  const shape = bytes.toString("latin1", 10, begin).match(/'shape': \(([^)]*)\)/)[1].split(",").filter((n) => n.trim()).map(Number);
  return { shape, at: (h, i, j) => bytes.readFloatLE(begin + 4 * ((h * shape[1] + i) * shape[2] + j)) };
}
const exact = readArray(array), [nHeads, n] = exact.shape;

const { browser, page, wrong } = await openBrowser(pictures, { width: 1000, height: 1400 });
let failed = 0;
try {
  await page.goto("file://" + file);
  const text = (selector) => page.$eval(selector, (element) => element.textContent);

  assert.match(await page.title(), /^Attention of demo$/);
  assert.equal(await text("#title"), "layer 2, head 0");
  assert.equal(await page.$$eval("#pattern option", (all) => all.length), 5);
  assert.equal(await page.$$eval("#head option", (all) => all.length), nHeads + 1);
  assert.equal(await page.$$eval("#tokens button", (all) => all.length), n);

  // The page's weights are the array's, to a hundredth or so.
  const far = await page.evaluate((wanted) => {
    const m = weights(data.patterns[2]);
    return Math.max(...wanted.map((w, i) => Math.abs(w - m[i])));
  }, Array.from({ length: nHeads * n * n }, (_, i) => exact.at(Math.floor(i / n / n), Math.floor(i / n) % n, i % n)));
  assert.ok(far < 0.012, `weights: expected those of the array, got ${far} beside`);

  // Pointing at a cell tells its weight.
  const box = await (await page.$("#map")).boundingBox();
  const places = await page.evaluate(() => ({ left, top: top_, cell, shown: map.clientWidth / map.width }));
  const query = n - 2, key = 1;
  await page.mouse.move(box.x + (places.left + (key + 0.5) * places.cell) * places.shown,
    box.y + (places.top + (query + 0.5) * places.cell) * places.shown);
  const told = (await text("#note")).match(/^“.*” \((\d+)\) gives “.*” \((\d+)\) ([\d.]+) %\./);
  assert.deepEqual(told.slice(1, 3).map(Number), [query, key]);
  assert.ok(Math.abs(told[3] / 100 - exact.at(0, query, key)) < 0.012);
  await page.screenshot({ path: pictures + "/attention.png" });

  // Keys move through the cells, the heads and the layers; a click on the overview chooses a head.
  await page.focus("#map");
  await page.keyboard.press("ArrowRight");
  assert.match(await text("#note"), new RegExp(`\\(${query}\\) gives .* \\(${key + 1}\\)`));
  await page.focus("#all");
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("ArrowRight");
  assert.equal(await text("#title"), "layer 3, head 1");
  await page.select("#head", String(nHeads));
  assert.equal(await text("#title"), "layer 3, mean of all heads");
  const overview = await (await page.$("#all")).boundingBox();
  const thumbs = await page.evaluate(() => ({ side, step, shown: all.clientWidth / all.width }));
  await page.mouse.click(overview.x + (thumbs.side + 2.5 * thumbs.step) * thumbs.shown, overview.y + (18 + thumbs.step / 2) * thumbs.shown);
  assert.equal(await text("#title"), "layer 0, head 2");

  // Another scale draws the same head otherwise; so does a dark page.
  const drawn = () => page.$eval("#map", (canvas) => canvas.toDataURL());
  const byRow = await drawn();
  await page.select("#scale", "whole");
  assert.notEqual(await drawn(), byRow);
  assert.equal(await text("#most"), "1");
  await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: "dark" }]);
  await page.waitForFunction((before) => document.getElementById("map").toDataURL() !== before, {}, byRow);
  await page.screenshot({ path: pictures + "/attention_dark.png" });
  assert.deepEqual(wrong, []);
  console.log("the page of --picture: heads, cells, keys, scales, dark: as expected");
} catch (error) {
  failed = 1;
  console.error(error);
} finally {
  await browser.close();
}
process.exit(failed);
