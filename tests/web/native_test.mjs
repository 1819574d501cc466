// What Node's addon does beside the other modules of the package: schemas and sources at run time, threads, ends.
import assert from 'node:assert/strict';
import {spawnSync} from 'node:child_process';
import {cpSync, readdirSync, readFileSync} from 'node:fs';
import {resolve} from 'node:path';
import {setImmediate, setTimeout} from 'node:timers/promises';
import {test} from 'node:test';
import {Worker} from 'node:worker_threads';
import {demo, folder, fovea, FoveaError, hashOf, load, modelOf, models, root} from './package.mjs';

const kCommand = 'turn on the garden dehumidifier', kSchema = `${root}/examples/home_commands.schema.json`;
const wanted = fovea('run', demo, '-p', kCommand).trimEnd();
const threads = () => readdirSync('/proc/self/task').length;
/// As soon as a condition holds.
async function until(holds) {
  for (const start = Date.now(); !await holds(); await setTimeout(5)) assert.ok(Date.now() - start < 60000, `${holds}`);
}

test('answers of a schema', async () => {
  const model = await load(demo, {module: 'native'}), schema = readFileSync(kSchema, 'utf8');
  for (const command of [kCommand, 'write a poem about the sea']) {
    const answer = fovea('run', demo, '-p', command, '--json-schema', kSchema).trimEnd();
    for (const given of [schema, JSON.parse(schema), schema]) assert.equal((await model.complete(command, {schema: given})).text, answer);
  }
  await assert.rejects(model.complete(kCommand, {schema: {type: 'none'}}), FoveaError);
  await assert.rejects(model.complete(kCommand, {schema: '{'}), FoveaError);
  assert.equal((await model.complete(kCommand)).text, wanted);
  model.close();
});

test('a folder of Hugging Face is converted', async () => {
  process.env.XDG_CACHE_HOME = `${models}/cache`;
  const model = await load(`${root}/tests/golden/encoders/bert_sentence`, {module: 'native'});
  const converted = await load(modelOf('encoders/bert_sentence'), {module: 'native'});
  assert.equal(hashOf(await model.embed(kCommand)), hashOf(await converted.embed(kCommand)));
  model.close();
  converted.close();
});

test('models compute beside each other, and beside the event loop', async () => {
  const all = await Promise.all(Array.from({length: 3}, () => load(demo, {module: 'native', threads: 1})));
  let turns = 0, done = false;
  const loop = (async () => {
    for (; !done; ++turns) await setImmediate();
  })();
  for (let i = 0; i < 5; ++i)
    for (const {text} of await Promise.all(all.map((model) => model.complete(kCommand)))) assert.equal(text, wanted);
  done = true;
  await loop;
  assert.ok(turns > 5, `expected the event loop to turn, got ${turns} turns`);
  // Calls that wait for each other, and one text at a time.
  const [model] = all, tokens = [1, 2, 3], [one, two] = await Promise.all([model.logits(tokens), model.logits(tokens)]);
  assert.deepEqual(one, two);
  const text = model.complete(kCommand);
  await assert.rejects(model.complete(kCommand), /makes no text/);
  assert.equal((await text).text, wanted);
  for (const each of all) each.close();
});

test('a signal ends a pass, and closing does', async () => {
  const model = await load(modelOf('f32'), {module: 'native', threads: 1, batch: 192});
  const prompt = Uint32Array.from({length: 200}, (_, i) => i * 7919 % 512), first = await model.logits(prompt);
  for (const wait of [() => {}, setImmediate, () => setTimeout(1), () => setTimeout(3)]) {
    const stop = new AbortController(), text = model.complete(prompt, {signal: stop.signal});
    const ends = assert.rejects(text, {name: 'AbortError'}), waited = wait();
    await waited;
    stop.abort();
    // A text that has ended by then is no failure of this test.
    await ends.catch((error) => assert.match(error.message, /Missing expected rejection/));
    assert.deepEqual(await model.logits(prompt), first);
  }
  const last = model.complete(prompt), more = model.logits(prompt).catch((error) => error);
  const ends = assert.rejects(last, FoveaError);
  await setImmediate();
  model.close();
  await ends;
  assert.ok(await more instanceof FoveaError);
  const conversion = new AbortController(), opens = load(demo, {module: 'native', signal: conversion.signal});
  conversion.abort();
  await assert.rejects(opens, {name: 'AbortError'});
});

test('what nobody holds is given back', async () => {
  await setTimeout(100);  // models of other tests
  const before = threads();
  for (let i = 0; i < 20; ++i) await (await load(modelOf('q4'), {module: 'native', threads: 2})).complete([1, 2], {maxTokens: 2});
  await until(() => (globalThis.gc(), threads() < before + 10));  // of 40
});

test('a thread of Node.js, and its end', async () => {
  const program = `const {parentPort} = require('node:worker_threads');
    (async () => {
      const {load} = await import('${folder}/node.mjs'), model = await load('${demo}', {module: 'native'});
      parentPort.postMessage((await model.complete('${kCommand}')).text);
      for (;;) await model.complete('${kCommand}');
    })();`;
  const before = threads();
  for (let i = 0; i < 3; ++i) {
    const worker = new Worker(program, {eval: true});
    assert.equal(await new Promise((done, failed) => worker.once('message', done).once('error', failed)), wanted);
    await worker.terminate();  // amid a text
  }
  await until(() => threads() < before + 4);
});

test('a program ends with its models open, or amid a text', () => {
  const begin = `const {load} = await import('${folder}/node.mjs'), model = await load('${demo}', {module: 'native'});`;
  for (const [end, status] of [['', 0], ['model.complete("x").then(() => {}); process.exit(3);', 3], ['await model.complete("x");', 0]]) {
    const {status: got, signal, stderr} = spawnSync(process.execPath, ['--input-type=module', '-e', begin + end], {timeout: 60000});
    assert.deepEqual([got, signal], [status, null], String(stderr));
  }
});

test('without the addon WebAssembly computes', async () => {
  const plain = resolve(models, 'plain');
  cpSync(resolve(folder), plain, {recursive: true, filter: (path) => !path.includes('@fovea')});
  const package_ = await import(`${plain}/node.mjs`), model = await package_.load(demo);
  assert.ok(!package_.modules.includes('native'));
  await assert.rejects(package_.load(demo, {module: 'native'}), /module: expected one of/);
  assert.equal((await model.complete(kCommand)).text, wanted);
  await assert.rejects(model.complete(kCommand, {schema: {}}), /schema: expected a form/);
  model.close();
});
