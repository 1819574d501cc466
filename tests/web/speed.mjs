// Tokens per second of CPU time of both modules, by type of weights: node speed.mjs MODEL [TYPE...]. Pairs, one after the other, on
// one thread: the median of each and of their ratio. A prompt of 64 tokens, then 32 one by one.
import {existsSync, mkdirSync} from 'node:fs';
import {basename} from 'node:path';
import {fovea, load} from './package.mjs';

const kPrompt = 64, kNew = 32, kPairs = Number(process.env.PAIRS ?? 5);
const [source, ...types] = process.argv.slice(2);
const median = (x) => x.toSorted((a, b) => a - b)[x.length >> 1];

const spent = () => process.cpuUsage().user / 1000;  // ms, of this process alone

async function rates(path, simd) {
  const model = await load(path, {simd, maxPositions: 128});
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
console.log('type      prompt scalar  simd128  times   tokens scalar  simd128  times');
for (const type of types.length ? types : ['']) {
  const path = type ? `${folder}${basename(source)}.${type}.fovea` : source;
  if (!existsSync(path)) fovea('convert', source, '--type', type, '-o', path);
  await rates(path, true), await rates(path, false);  // compiled by then
  const pairs = [];
  for (let i = 0; i < kPairs; ++i) pairs.push({scalar: await rates(path, false), simd: await rates(path, true)});
  const row = ['prompt', 'tokens'].flatMap((what) => [
    median(pairs.map((p) => p.scalar[what])), median(pairs.map((p) => p.simd[what])), median(pairs.map((p) => p.simd[what] / p.scalar[what]))]);
  console.log((type || basename(path)).padEnd(9), ...row.map((x, i) => x.toFixed(i % 3 === 2 ? 2 : 1).padStart(i % 3 === 2 ? 6 : 9)));
}
