// The page in Chromium: what a person does with it, by mouse, keyboard and telephone, without a network, and with another model.
// `./dev page` installs the browser. Pictures to look at go to build/web/pictures.
import assert from 'node:assert/strict';
import {createReadStream, existsSync, mkdirSync, readFileSync, statSync, writeFileSync} from 'node:fs';
import http from 'node:http';
import {resolve} from 'node:path';
import {test} from 'node:test';
import {checkAccess, openBrowser} from '../support/browser.mjs';
import {demo, folder, fovea, isaOf, load, modelOf, models, root} from './package.mjs';

const kTypes = {html: 'text/html', css: 'text/css', js: 'text/javascript', mjs: 'text/javascript', wasm: 'application/wasm'};
const browsers = `${root}/build/page`, site = `${folder}/../page`, pictures = `${folder}/../pictures`;
const kSchema = `${root}/examples/home_commands.schema.json`;
const wanted = (command) => fovea('run', demo, '-p', command, '--json-schema', kSchema, '--compact').replace(/\n$/, '');

const server = http.createServer((request, response) => {
  const name = new URL(request.url, 'http://a').pathname.slice(1) || 'index.html', path = `${site}/${name}`;
  if (!existsSync(path)) return response.writeHead(404).end();
  response.setHeader('content-type', kTypes[name.split('.').at(-1)] ?? 'application/octet-stream');
  response.setHeader('content-length', statSync(path).size);
  createReadStream(path).pipe(response);
});

test('the page', {skip: !existsSync(`${browsers}/node_modules/puppeteer-core`) && 'no browser: ./dev page'}, async (t) => {
  mkdirSync(pictures, {recursive: true});
  await new Promise((done) => server.listen(0, '127.0.0.1', done));
  const address = `http://127.0.0.1:${server.address().port}/`, foreign = [];
  const {browser, page, wrong} = await openBrowser(browsers, {width: 1100, height: 900});
  page.on('request', (request) => request.url().startsWith(address) || /^(data|blob):/.test(request.url()) || foreign.push(request.url()));
  const text = (selector) => page.$eval(selector, (found) => found.textContent);
  const until = (check, ...args) => page.waitForFunction(check, {timeout: 20000}, ...args);
  const ready = () => until(() => !document.querySelector('#send').disabled && !document.querySelector('.running'));
  const picture = (name) => page.screenshot({path: `${pictures}/${name}.png`, fullPage: true});
  const allHeads = () => until(() => {
    const lines = [...document.querySelectorAll('.line')];
    return lines.length && lines.every((line) => line.querySelector('canvas')) && / looks at /.test(document.querySelector('.looks')?.textContent);
  });
  const upload = async (path) => (await page.$('#file')).uploadFile(resolve(path));

  await t.test('a command becomes the JSON of the command line', async () => {
    await page.goto(address);
    await ready();
    await page.click('#prompts li:nth-child(2) button');
    await until(() => document.querySelector('#status').textContent.startsWith('The answer: '));
    const command = await text('#prompts li:nth-child(2) button');
    assert.equal(await text('#answer'), wanted(command));
    assert.ok(JSON.parse(await text('#answer')).do);
    assert.match(await text('#cost'), /^\d+ tokens read, \d+ written · first after [\d.]+ m?s · [\d.]+ tokens a second$/);
    await allHeads();
    await picture('wide');
    await checkAccess(page, 'an answer');
  });

  await t.test('every layer and head, a token, a cell', async () => {
    const [layers, heads] = [await page.$$eval('.line', (all) => all.length), await page.$$eval('.line:first-child button', (all) => all.length)];
    const {n_layers: nLayers, blocks: [{n_heads: nHeads}]} = JSON.parse(fovea('inspect', demo, '--json')).decoder;
    assert.deepEqual([layers, heads], [nLayers, nHeads]);
    const looks = await text('.looks'), button = `.line:nth-child(2) button:nth-of-type(3)`;
    await page.click(button);
    await until((before) => document.querySelector('.looks').textContent !== before, looks);
    assert.deepEqual(await page.$eval('.layer', (s) => s.value) + await page.$eval('.head', (s) => s.value), '12');
    await page.focus(button);
    await page.keyboard.press('ArrowDown');
    await until(() => document.querySelector('.layer').value === '2' && document.activeElement.ariaLabel === 'Layer 2, head 2');
    await page.focus('.tokens [aria-pressed=true]');
    await page.keyboard.press('Home');
    assert.match(await text('.looks'), / 100\.0 %$/);  // the first token sees itself alone
    await page.$eval('.map', (map) => map.scrollIntoView());
    const box = await (await page.$('.map')).boundingBox(), n = await page.$$eval('.tokens button', (all) => all.length);
    await page.mouse.move(box.x + 0.5 * box.width / n, box.y + 4.5 * box.height / n);
    assert.equal(await page.$eval('.tokens button:nth-child(5)', (b) => b.ariaPressed), 'true');
    assert.match(await text('.looks'), /looks at “[^”]*” [\d.]+ %, /);
  });

  await t.test('memory and kernels', async () => {
    const model = await load(demo, {module: 'scalar'}), best = await page.evaluate(async () => (await import('./fovea.mjs')).modules[0]);
    assert.match(await text('#memory .file'), /^The model’s file3.77 MB, used in place$/);
    assert.match(await text('#memory .arena'), new RegExp(`^Its arena${model.info.arenaBytes.toLocaleString('en')} bytes`));
    assert.match(await text('#memory'), new RegExp(`Kernels${isaOf[best]},`));
    model.close();
  });

  await t.test('keyboard alone', async () => {
    await page.focus('#text');
    await page.$eval('#text', (field) => (field.value = ''));
    await page.keyboard.type('play jazz in the attic');
    await page.keyboard.press('Enter');
    await until(() => document.querySelector('#status').textContent.includes('jazz'));
    assert.equal(await text('#answer'), wanted('play jazz in the attic'));
  });

  await t.test('a telephone, dark', async () => {
    await page.setViewport({width: 390, height: 844, isMobile: true, hasTouch: true});
    await page.emulateMediaFeatures([{name: 'prefers-color-scheme', value: 'dark'}]);
    await page.reload();
    await ready();
    await page.click('#send');
    await allHeads();
    await picture('phone');
    await checkAccess(page, 'a telephone');
    const [width, shown] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
    assert.ok(width <= shown, `expected nothing wider than ${shown}, got ${width}`);
    await page.setViewport({width: 1100, height: 900});  // loads the page again
    await ready();
    await page.click('#send');
    await allHeads();
    await picture('dark');
    await page.emulateMediaFeatures([]);
  });

  await t.test('a model of one\'s own', async () => {
    await upload(modelOf('encoders/bert_sentence'));
    await until(() => document.querySelector('#ask-title').textContent.includes('vector'));
    await ready();
    await page.type('#text', 'the lamp is on');
    await page.keyboard.press('Enter');
    await until(() => document.querySelector('#status').textContent.startsWith('The answer: ['));
    await allHeads();
    const path = `${models}/page.npy`;
    fovea('encode', modelOf('encoders/bert_sentence'), '-p', 'the lamp is on', '-o', path);
    const file = readFileSync(path), start = 10 + file.readUInt16LE(8);
    assert.equal(Number((await text('#answer')).match(/-?[\d.]+/)[0]), Number(file.readFloatLE(start).toFixed(4)));
    await picture('vector');
    await checkAccess(page, 'a vector');
    // What cannot be read is said, and the model before it stays.
    for (const [name, bytes] of [['broken.fovea', readFileSync(demo).subarray(0, 5000)], ['some.gguf', Buffer.from('GGUF\x03\0\0\0')]]) {
      writeFileSync(`${models}/${name}`, bytes);
      await upload(`${models}/${name}`);
      await until(() => document.querySelector('#notice').textContent !== '');
      assert.match(await text('#notice'), name.endsWith('gguf') ? /a GGUF file is converted first/ : /expected|want/);
      await ready();
    }
    await checkAccess(page, 'a refusal');
    await page.click('#demo');
    await until(() => document.querySelector('#ask-title').textContent === 'A home command becomes JSON');
    await ready();
  });

  await t.test('without a network, after one visit', async () => {
    await page.evaluate(async () => (await navigator.serviceWorker.ready).active.state);
    await until(async () => (await caches.keys()).length === 1 && navigator.serviceWorker.controller);
    server.close();
    server.closeAllConnections();
    await assert.rejects(fetch(address));
    await page.reload();
    await ready();
    await page.click('#send');
    await until(() => document.querySelector('#status').textContent.startsWith('The answer: {'));
    assert.equal(await text('#answer'), wanted(await page.$eval('#text', (field) => field.value)));
    await allHeads();
  });

  assert.deepEqual([wrong, foreign], [[], []]);
  await browser.close();
});
