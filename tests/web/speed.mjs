// Tokens per second of CPU time of each module, by type of weights: node speed.mjs MODEL [TYPE...]. The modules take turns on one
// thread: the median of each, and of how many times as fast as the slowest it is. A prompt of 64 tokens, then 32 one by one.
import {existsSync, mkdirSync} from 'node:fs';
import {basename} from 'node:path';
import {fovea, isaOf, load, modules as all} from './package.mjs';

const kPrompt = 64, kNew = 32, kTurns = Number(process.env.TURNS ?? 5);
const [source, ...types] = process.argv.slice(2), modules = all.filter((name) => name in isaOf);
const median = (x) => x.toSorted((a, b) => a - b)[x.length >> 1];

const spent = () => process.cpuUsage().user / 1000;  // ms, of this process alone

async function rates(path, module) {
  const model = await load(path, {module, maxPositions: 128});
  const tokens = Uint32Array.from({length: kPrompt}, (_, i) => i * 7919 % model.info.vocabSize);
  let made = 0, start = spent(), prompt = 0;
  for await (const piece of model.generate(tokens, {maxTokens: kNew + 1, showSpecial: true})) {
    if (made === 0) prompt = spent() - start, start = spent();
    made += piece.tokens.length;
  }
  const each = (spent() - start) / (made - 1);
  model.close();
  return {prompt: 1000 * kPrompt / prompt, tokens: 1000 / each, made};
}

const folder = new URL('../../build/web/models/', import.meta.url).pathname;
mkdirSync(folder, {recursive: true});
const order = modules.toReversed(), cell = (x) => String(x).padStart(9);
const columns = ['prompt', 'tokens'].flatMap((what) => [what, ...order.map(cell), ...order.slice(1).map(() => cell('times'))]);
console.log(''.padEnd(9), ...columns);
for (const type of types.length ? types : ['']) {
  const path = type ? `${folder}${basename(source)}.${type}.fovea` : source;
  if (!existsSync(path)) fovea('convert', source, '--type', type, '-o', path);
  for (const module of order) await rates(path, module);  // compiled by then
  const turns = [];
  for (let i = 0; i < kTurns; ++i) {
    const turn = {};
    for (const module of i % 2 ? modules : order) turn[module] = await rates(path, module);
    turns.push(turn);
  }
  const row = ['prompt', 'tokens'].flatMap((what) => [
    what, ...order.map((module) => cell(median(turns.map((turn) => turn[module][what])).toFixed(1))),
    ...order.slice(1).map((module) => cell(median(turns.map((turn) => turn[module][what] / turn[order[0]][what])).toFixed(2)))]);
  console.log((type || basename(path)).padEnd(9), ...row);
}
