// The committed hashes of logits, by each module of the package: every type of weights and every family. FOVEA is the command line
// that converts and whose texts, vectors and tokens are the wanted ones; PACKAGE the built package's folder.
import assert from 'node:assert/strict';
import {readFileSync} from 'node:fs';
import {test} from 'node:test';
import {hashOf, isaOf, load, modelOf, modules, root} from './package.mjs';

const kPrompt = 'turn on the garden dehumidifier\n', kTokens = 80;
const [first, ...lines] = readFileSync(`${root}/tests/golden/logit_hashes.txt`, 'utf8').trim().split('\n');

/// Those of fovea certify: the prompt's, or of a model without a tokenizer the first few of a fixed list.
function tokensOf(model) {
  if (model.info.hasTokenizer) return model.tokenize(kPrompt);
  const n = Math.min(kTokens, model.info.maxPositions);
  return Uint32Array.from({length: n}, (_, i) => i * 7919 % model.info.vocabSize);
}

for (const module of modules)
  for (const line of lines) {
    const [name, wanted] = line.split(' ');
    test(`${module}: ${name}`, async () => {
      const model = await load(modelOf(name), {module});
      assert.equal(model.info.isa, isaOf[module] ?? model.info.isa);
      assert.equal(first, `numerics_version ${model.info.numericsVersion}`);
      const tokens = tokensOf(model);
      for (const piece of [tokens.length, 7, 1]) assert.equal(hashOf(await model.logits(tokens, {piece})), wanted);
      model.close();
    });
  }
