// Vectors beside transformers.js, in turns on one page of Chromium, one thread each: node transformers.mjs FOLDER MODEL FOVEA [DTYPE [TURNS]].
// FOLDER is where npm put @huggingface/transformers@4, puppeteer-core@24, @sparticuz/chromium@147 and axe-core@4; MODEL a folder with
// config.json, tokenizer.json and onnx/model.onnx (DTYPE q8: onnx/model_quantized.onnx); FOVEA that model's file.
import {resolve} from 'node:path';
import {openBrowser} from '../support/browser.mjs';
import {serveFolders} from './folders.mjs';
import {folder as built} from './package.mjs';

const [folder, model, fovea, dtype = 'fp32', turns = 7] = process.argv.slice(2);
const packages = `${resolve(folder)}/node_modules`;
const places = {'/transformers/': `${packages}/@huggingface/transformers/dist/`, '/ort/': `${packages}/onnxruntime-web/dist/`,
  '/models/it/': `${resolve(model)}/`, '/fovea/': `${built}/`, '/model.fovea': fovea};

const {server, address} = await serveFolders(places);
const {browser, page} = await openBrowser(resolve(folder), {width: 800, height: 600});
page.setDefaultTimeout(0);
page.on('console', (message) => message.type() === 'error' && console.error(message.text()));
await page.goto(address);

/// window.turn gives the milliseconds that twelve texts took, one by one, by transformers.js and by each module.
const result = await page.evaluate(async (type) => {
  const [{env, pipeline}, {load, modules}] = await Promise.all([import('/transformers/transformers.js'), import('/fovea/fovea.mjs')]);
  env.allowRemoteModels = false;
  env.allowLocalModels = true;
  env.localModelPath = '/models/';
  Object.assign(env.backends.onnx.wasm, {wasmPaths: '/ort/', numThreads: 1, proxy: false});
  const words = 'The small engine by the sea counts the waves of every single day and tells the people of the town how many there were. '.split(' ');
  const texts = Array.from({length: 12}, (_, i) => Array.from({length: 8 + 7 * i}, (_, j) => words[(5 * i + j) % (words.length - 1)]).join(' '));
  const extract = await pipeline('feature-extraction', 'it', {dtype: type, device: 'wasm'});
  const fast = modules.filter((name) => name !== 'scalar'), models = {};
  for (const module of fast) models[module] = await load('/model.fovea', {module, cache: false});
  const ways = {
    'transformers.js': async (text) => (await extract(text, {pooling: 'mean', normalize: true})).data,
    ...Object.fromEntries(fast.map((module) => [module, (text) => models[module].embed(text)])),
  };
  const names = Object.keys(ways);
  let nearest = 1;
  for (const text of texts) {
    const [theirs, ours] = [await ways[names[0]](text), ways[names[1]](text)];
    nearest = Math.min(nearest, theirs.reduce((sum, x, i) => sum + x * ours[i], 0));
  }
  window.turn = async (number) => {
    const took = {};
    for (const name of number % 2 ? names : names.toReversed()) {
      const start = performance.now();
      for (const text of texts) await ways[name](text);
      took[name] = performance.now() - start;
    }
    return took;
  };
  return {names, nearest, nTokens: texts.reduce((sum, text) => sum + models[fast[0]].tokenize(text).length, 0)};
}, dtype);
const times = [];
for (let number = -1; number < Number(turns); ++number) {
  const took = await page.evaluate((which) => window.turn(which), number);
  if (number >= 0) times.push(took);
}
const median = (x) => x.toSorted((a, b) => a - b)[x.length >> 1];
console.log(`${result.nTokens} tokens; least cosine of the two ${result.nearest.toFixed(5)}`);
for (const name of result.names)
  console.log(`${name}: ${median(times.map((took) => took[name])).toFixed(1)} ms, ` +
              `${median(times.map((took) => took['transformers.js'] / took[name])).toFixed(2)} times as fast as transformers.js`);
await browser.close();
server.close();
