// A model as programs see it, whatever computes: a core of WebAssembly (wasm.mjs) or of Node's addon (native.mjs). See fovea.d.mts.

/// A refusal, in one line: what was expected, and what was got.
export class FoveaError extends Error {
  name = 'FoveaError';
}

const kNoToken = 0xffffffff;
const kKinds = ['text', 'vectors', 'attention'];
const kCacheTypes = {f32: 0, f16: 1, q8: 3, q4: 4};
const kFinish = [null, 'end', 'stop', 'length', 'context'];
const kReadSpecial = 1, kNoSpecial = 2;  // of fovea_model_tokenize

/// A core's facts as fovea.d.mts has them.
export const infoOf = ({kind, pools, hasTokenizer, bos, ...facts}) => Object.freeze({
  ...facts, kind: kKinds[kind], pools: Boolean(pools), hasTokenizer: Boolean(hasTokenizer), bos: bos === kNoToken ? null : bos,
});

/// What a package exports. openers: how each of its modules opens a core, by name, the fastest first.
export function packageOf(openers) {
  const modules = Object.freeze(Object.keys(openers));
  const load = async (source, {module = modules[0], cacheType = 'f32', maxPositions = 0, batch = 0, isa = '', ...how} = {}) => {
    how.signal?.throwIfAborted();
    if (!modules.includes(module)) throw new FoveaError(`module: expected one of ${modules.join(', ')}, got ${module}`);
    if (!(cacheType in kCacheTypes))
      throw new FoveaError(`cacheType: expected one of ${Object.keys(kCacheTypes).join(', ')}, got ${cacheType}`);
    return new Model(await openers[module](source, {...how, cacheType: kCacheTypes[cacheType], maxPositions, batch, isa}));
  };
  return {modules, load};
}

/// See fovea.d.mts for each function.
export class Model {
  #core;
  #busy = false;
  info;

  constructor(core) {
    this.#core = core;
    this.info = core.info;
  }

  /// Twice does nothing.
  close() {
    this.#core?.close();
    this.#core = null;
  }
  [Symbol.dispose ?? Symbol('dispose')]() {
    this.close();
  }

  get memoryBytes() {
    return this.#opened().memoryBytes;
  }

  #opened() {
    if (!this.#core) throw new FoveaError('model: expected one that is open, got one that was closed');
    return this.#core;
  }
  /// The core, which makes no text.
  #idle() {
    if (this.#busy) throw new FoveaError('model: expected one that makes no text, got one that does');
    return this.#opened();
  }
  #wants(kind) {
    this.#opened();
    if (this.info.kind !== kind) throw new FoveaError(`model: expected one that gives ${kind}, got one that gives ${this.info.kind}`);
  }
  #tokensOf(text) {
    return typeof text === 'string' ? this.tokenize(text) : Uint32Array.from(text);
  }

  tokenize(text, {readSpecial = false, addSpecial = true} = {}) {
    return this.#idle().tokenize(text, (readSpecial ? kReadSpecial : 0) + (addSpecial ? 0 : kNoSpecial));
  }
  decode(tokens) {
    return this.#idle().decode(Uint32Array.from(tokens));
  }

  // ---- text --------------------------------------------------------------------------------------------------------

  async * #pieces(tokens, {maxTokens = 0, stop = [], form, schema, showSpecial = false, signal, ...sampling}) {
    const core = this.#idle(), cancel = () => core.cancel(true);
    this.#busy = true;
    try {
      signal?.throwIfAborted();
      signal?.addEventListener('abort', cancel);
      for (const [name, value] of Object.entries(sampling)) {
        if (value === undefined) delete sampling[name];
        else if (typeof value !== 'number')
          throw new FoveaError(`${name}: expected an option of generate and a number, got ${JSON.stringify(value)}`);
      }
      if (schema !== undefined && typeof schema !== 'string') schema = JSON.stringify(schema);
      await core.start({tokens, maxTokens, stops: [stop].flat(), form, schema, showSpecial, sampling});
      for (;;) {
        for (const {finish, ...piece} of await core.advance()) {
          signal?.throwIfAborted();
          yield {...piece, finish: kFinish[finish]};
          if (finish) return;
        }
        signal?.throwIfAborted();
      }
    } catch (error) {
      throw signal?.aborted ? signal.reason : error;
    } finally {
      signal?.removeEventListener('abort', cancel);
      core.cancel(false);
      core.end();
      this.#busy = false;
    }
  }

  generate(prompt, options = {}) {
    this.#wants('text');
    return this.#pieces(this.#tokensOf(typeof prompt === 'string' ? prompt + this.info.promptSuffix : prompt), options);
  }

  async complete(prompt, options = {}) {
    return whole(this.generate(prompt, options));
  }

  /// The text of a conversation, by the model's template. A message that spells a special token is refused: it would end its turn.
  async renderChat(messages, variables = {}) {
    this.#wants('text');
    if (!this.info.chatTemplate) throw new FoveaError('chat: expected a model with a chat template, got one without');
    for (const {role, content} of messages) {
      const plain = this.tokenize(String(content), {addSpecial: false});
      const read = this.tokenize(String(content), {addSpecial: false, readSpecial: true});
      if (plain.join() !== read.join())
        throw new FoveaError(`chat: expected a message without special tokens, got one of ${role} that has some`);
    }
    return this.#idle().render(messages, variables);
  }

  async * chat(messages, {variables, ...options} = {}) {
    const text = await this.renderChat(messages, variables);
    yield * this.#pieces(this.tokenize(text, {readSpecial: true, addSpecial: false}), options);
  }

  async answer(messages, options = {}) {
    return whole(this.chat(messages, options));
  }

  // ---- vectors, logits, attention ----------------------------------------------------------------------------------

  async embed(texts) {
    this.#wants('vectors');
    if (!Array.isArray(texts)) return this.#idle().embed(this.#tokensOf(texts));
    const vectors = [];
    for (const text of texts) vectors.push(await this.embed(text));
    return vectors;
  }

  async logits(tokens, {piece = tokens.length || 1} = {}) {
    this.#wants('text');
    if (!(piece >= 1)) throw new FoveaError(`piece: expected at least one token, got ${piece}`);
    return this.#idle().logits(Uint32Array.from(tokens), piece);
  }

  async attention(text, {layer = 0, perHead = true} = {}) {
    const tokens = this.#tokensOf(text), {heads, weights} = await this.#idle().attention(tokens, layer, perHead);
    return {tokens, shape: [heads, tokens.length, tokens.length], weights};
  }
}

/// All pieces as one.
async function whole(pieces) {
  const tokens = [];
  let text = '', finish = null;
  for await (const piece of pieces) {
    text += piece.text;
    tokens.push(...piece.tokens);
    finish = piece.finish;
  }
  return {text, tokens: Uint32Array.from(tokens), finish};
}
