// The package beside wllama, pair by pair on one page of Chromium, one thread each: node wllama.mjs FOLDER GGUF FOVEA [PAIRS]. Both files
// are of one model; FOLDER is where npm put @wllama/wllama, puppeteer-core@24, @sparticuz/chromium@147 and axe-core@4.
import {resolve} from 'node:path';
import {openBrowser} from '../support/browser.mjs';
import {serveFolders} from './folders.mjs';
import {folder as built} from './package.mjs';

const [folder, gguf, fovea, pairs = 3] = process.argv.slice(2);
const places = {'/wllama/': `${resolve(folder)}/node_modules/@wllama/wllama/esm/`, '/fovea/': `${built}/`, '/model.gguf': gguf, '/model.fovea': fovea};

const {server, address} = await serveFolders(places);
const {browser, page} = await openBrowser(resolve(folder), {width: 800, height: 600});
page.setDefaultTimeout(0);
await page.goto(address);

/// Milliseconds to the first token, and for each after it, of both.
const times = await page.evaluate(async (pairs) => {
  const kNew = 24, words = 'Once upon a time there was a small engine that lived in a big house by the sea and counted the waves every single day. ';
  const [{Wllama}, {load}] = await Promise.all([import('/wllama/index.js'), import('/fovea/fovea.mjs')]);
  const wllama = new Wllama({default: `${location.origin}/wllama/wasm/wllama.wasm`}, {suppressNativeLog: true});
  await wllama.loadModelFromUrl(`${location.origin}/model.gguf`, {n_ctx: 512, n_threads: 1, n_gpu_layers: 0, useCache: false});
  const model = await load('/model.fovea', {maxPositions: 512, cache: false});
  const timed = async (pieces) => {
    const start = performance.now();
    let first = 0;
    for await (const piece of await pieces()) first ||= performance.now();
    return {first: first - start, each: (performance.now() - first) / (kNew - 1)};
  };
  const both = async (n) => {  // another prompt each time, so that nothing is kept of the last
    const prompt = `${n} ${words.repeat(3)}`;
    return [await timed(() => wllama.createCompletion({prompt, max_tokens: kNew, temperature: 0, stream: true, ignore_eos: true, cache_prompt: false})),
            await timed(() => model.generate(prompt, {maxTokens: kNew}))];
  };
  await both(0);
  const all = [];
  for (let n = 1; n <= pairs; ++n) all.push(await both(n));
  return all;
}, Number(pairs));
const median = (x) => x.toSorted((a, b) => a - b)[x.length >> 1].toFixed(1);
for (const what of ['first', 'each'])
  console.log(`${what} token: wllama ${median(times.map(([w]) => w[what]))} ms, fovea ${median(times.map(([, f]) => f[what]))} ms, ` +
              `times ${median(times.map(([w, f]) => w[what] / f[what]))}`);
await browser.close();
server.close();
