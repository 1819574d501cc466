// The package in Chromium: on a page and in a worker, with the browser's cache storage. `./dev page` installs the browser; without it
// nothing is tested here.
import assert from 'node:assert/strict';
import {createReadStream, existsSync, statSync} from 'node:fs';
import http from 'node:http';
import {test} from 'node:test';
import {openBrowser} from '../support/browser.mjs';
import {demo, folder, fovea, isaOf, root} from './package.mjs';

const kCommand = 'turn on the lights in the kitchen', kTypes = {mjs: 'text/javascript', wasm: 'application/wasm'};
const kWorker = `import {load} from '/fovea.mjs';
onmessage = async ({data}) => {
  const model = await load('/demo.fovea');
  postMessage([(await model.complete(data)).text, model.info.isa]);
};`;
const browsers = `${root}/build/page`;

test('a page and a worker', {skip: !existsSync(`${browsers}/node_modules/puppeteer-core`) && 'no browser: ./dev page'}, async () => {
  const asked = [];
  const server = http.createServer((request, response) => {
    asked.push(request.url);
    const name = request.url.slice(1), path = name === 'demo.fovea' ? demo : `${folder}/${name}`;
    if (name === 'worker.mjs' || name === '') {
      response.setHeader('content-type', name ? 'text/javascript' : 'text/html');
      return response.end(name ? kWorker : '<!doctype html><title>Fovea</title><link rel="icon" href="data:,">');
    }
    response.setHeader('content-type', kTypes[path.split('.').at(-1)] ?? 'application/octet-stream');
    response.setHeader('content-length', statSync(path).size);
    createReadStream(path).pipe(response);
  });
  await new Promise((done) => server.listen(0, '127.0.0.1', done));
  const {browser, page, wrong} = await openBrowser(browsers, {width: 800, height: 600});
  try {
    await page.goto(`http://127.0.0.1:${server.address().port}/`);
    const [first, again, modules] = await page.evaluate(async (command) => {
      const {load, modules} = await import('/fovea.mjs'), texts = [];
      for (const options of [{}, {module: 'scalar'}]) {
        const seen = [], model = await load('/demo.fovea', {...options, onProgress: (n, all) => seen.push([n, all])});
        texts.push([(await model.complete(command)).text, model.info.isa, seen.at(-1)]);
        model.close();
      }
      return [...texts, modules];
    }, kCommand);
    const wanted = fovea('run', demo, '-p', kCommand).replace(/\n$/, ''), {size} = statSync(demo);
    assert.ok(modules.includes('simd128'));
    assert.deepEqual(first, [wanted, isaOf[modules[0]], [size, size]]);
    assert.deepEqual(again, [wanted, 'scalar', [size, size]]);
    const fromWorker = await page.evaluate((command) => new Promise((done, failed) => {
      const worker = new Worker('/worker.mjs', {type: 'module'});
      worker.onmessage = ({data}) => done(data);
      worker.onerror = ({message}) => failed(message);
      worker.postMessage(command);
    }), kCommand);
    assert.deepEqual(fromWorker, [wanted, isaOf[modules[0]]]);
    assert.equal(asked.filter((name) => name === '/demo.fovea').length, 1);  // then the cache had it
    assert.deepEqual(wrong, []);
  } finally {
    await browser.close();
    server.close();
  }
});
