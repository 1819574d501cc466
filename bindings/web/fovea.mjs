// Fovea in JavaScript: models that run in WebAssembly, in Node, browsers and workers. See README.md and fovea.d.mts.
import {reading} from './reading.mjs';

/// A refusal, in one line: what was expected, and what was got.
export class FoveaError extends Error {
  name = 'FoveaError';
}

const isNode = typeof process !== 'undefined' && Boolean(process.versions?.node);
const utf8 = new TextEncoder();
const kFailed = 0xffffffff, kNoToken = 0xffffffff;
const kKinds = ['text', 'vectors', 'attention'];
const kCacheTypes = {f32: 0, f16: 1, q8: 3, q4: 4};
const kFinish = [null, 'end', 'stop', 'length', 'context'];
const kReadSpecial = 1, kNoSpecial = 2;  // of fovea_model_tokenize
const kEndToken = 2;                     // of fovea_token_flags
const kTurnMs = 12;                      // after which other work of the thread has its turn

// ---- modules -------------------------------------------------------------------------------------------------------

/// Whether this engine has SIMD128: it validates a module of one function with i8x16.splat.
const hasSimd = () => WebAssembly.validate(Uint8Array.of(
    0, 97, 115, 109, 1, 0, 0, 0, 1, 5, 1, 96, 0, 1, 123, 3, 2, 1, 0, 10, 8, 1, 6, 0, 65, 0, 253, 15, 11));

/// Whether it has relaxed SIMD, whose f32x4.relaxed_madd rounds once on some machines and twice on others, on each always alike. Only
/// once gives the same bits as elsewhere. (1 + 2⁻¹²)² − (1 + 2⁻¹¹) is 2⁻²⁴, and 0 if rounded twice. Node.js 20 has the
/// instructions behind a flag, and products of bytes that are wrong.
function hasFusedSimd() {
  const splat = (x) => [67, ...new Uint8Array(Float32Array.of(x).buffer), 253, 19], factor = splat(1 + 2 ** -12);
  const code = [0, ...factor, ...factor, ...splat(-1 - 2 ** -11), 253, 133, 2, 253, 31, 0, 11];  // madd, lane 0
  const bytes = Uint8Array.of(0, 97, 115, 109, 1, 0, 0, 0, 1, 5, 1, 96, 0, 1, 125, 3, 2, 1, 0, 7, 5, 1, 1, 102, 0, 0,
                              10, code.length + 2, 1, code.length, ...code);
  if (isNode && parseInt(process.versions.node) < 22) return false;
  try {
    return WebAssembly.validate(bytes) && new WebAssembly.Instance(new WebAssembly.Module(bytes)).exports.f() === 2 ** -24;
  } catch {
    return false;
  }
}

/// The package's modules that this engine can run, the fastest first.
export const modules = Object.freeze([hasFusedSimd() && 'relaxed', hasSimd() && 'simd128', 'scalar'].filter(Boolean));

async function compile(name) {
  const url = new URL(name, import.meta.url);
  if (isNode && url.protocol === 'file:') return WebAssembly.compile(await (await import('node:fs/promises')).readFile(url));
  const response = await fetch(url);
  if (!response.ok) throw new FoveaError(`${url}: expected the module, got status ${response.status}`);
  return WebAssembly.compile(await response.arrayBuffer());
}

const compiled = {};  // promises, by module
const idle = {};      // an instance that no model has, by module: its memory cannot shrink, but serves the next model

async function take(name) {
  if (!modules.includes(name)) throw new FoveaError(`module: expected one of ${modules.join(', ')}, got ${name}`);
  compiled[name] ??= compile(`fovea-${name}.wasm`).catch((error) => {
    delete compiled[name];
    throw error;
  });
  const kept = idle[name];
  delete idle[name];
  return kept ?? {name, exports: (await WebAssembly.instantiate(await compiled[name])).exports};
}

/// Lets timers and events have their turn.
const otherWork = () => new Promise((resolve) => {
  if (typeof setImmediate === 'function') return setImmediate(resolve);
  const {port1, port2} = new MessageChannel();
  port1.onmessage = () => (port1.close(), resolve());
  port2.postMessage(null);
});

// ---- a model -------------------------------------------------------------------------------------------------------

/// One model in one module's memory. See fovea.d.mts for each function.
export class Model {
  #instance;
  #wasm;
  #busy = false;
  #trapped = false;
  #textEnds = null;
  info;

  static async load(source, options = {}) {
    const {module = modules[0], signal} = options;
    signal?.throwIfAborted();
    const model = new Model();
    model.#instance = await take(module);
    model.#wasm = model.#instance.exports;
    try {
      await model.#open(source, options);
    } catch (error) {
      model.#note(error);
      model.close();
      throw error;
    }
    return model;
  }

  /// Reads the file into the start of the memory and makes what computes behind it.
  async #open(source, {verify = false, maxPositions = 0, batch = 0, cacheType = 'f32', isa, ...how}) {
    if (!(cacheType in kCacheTypes))
      throw new FoveaError(`cacheType: expected one of ${Object.keys(kCacheTypes).join(', ')}, got ${cacheType}`);
    const wasm = this.#wasm;
    wasm.forget_model();
    const {nBytes: expected, chunks} = await reading(source, how);
    let at = this.#take(expected ?? 0), nBytes = 0, room = expected ?? 0;
    for await (const chunk of chunks) {
      if (nBytes + chunk.length > room) {  // of unknown length, or longer than it said
        wasm.release_memory(at);
        room = Math.max(2 * room, nBytes + chunk.length);
        at = this.#take(room);
      }
      this.#bytes(at + nBytes, chunk.length).set(chunk);
      nBytes += chunk.length;
      how.onProgress?.(nBytes, expected);
      how.signal?.throwIfAborted();
    }
    wasm.release_memory(at + nBytes);
    this.#check(wasm.open_model(at, nBytes, verify));
    const name = isa === undefined ? 0 : this.#putText(isa, true).at;
    this.#check(wasm.make_runtime(maxPositions, batch, kCacheTypes[cacheType], name));
    this.#readFacts();
  }

  #readFacts() {
    const wasm = this.#wasm, names = ['kind', 'fingerprint', 'nLayers', 'dModel', 'vocabSize', 'maxPositions', 'nHeads', 'nKvHeads',
      'headDim', 'pools', 'hasTokenizer', 'fileBytes', 'resultWidth', 'numericsVersion', 'bos'];
    const facts = Object.fromEntries(names.map((name, i) => [name, wasm.fact(i)]));
    ['name', 'architecture', 'promptSuffix', 'chatTemplate'].forEach(
        (name, i) => (facts[name] = this.#text(wasm.text_fact_at(i), wasm.text_fact_bytes(i))));
    facts.kind = kKinds[facts.kind];
    facts.pools = Boolean(facts.pools);
    facts.hasTokenizer = Boolean(facts.hasTokenizer);
    facts.bos = facts.bos === kNoToken ? null : facts.bos;
    facts.contextLength = wasm.max_positions() >>> 0;
    facts.arenaBytes = wasm.arena_bytes();
    facts.isa = this.#line(wasm.isa());
    facts.version = this.#line(wasm.version());
    this.info = Object.freeze(facts);
  }

  /// Gives the memory back to the next model. Twice does nothing.
  close() {
    if (!this.#instance) return;
    this.#wasm.forget_model();
    if (!this.#trapped) idle[this.#instance.name] = this.#instance;
    this.#instance = this.#wasm = null;
  }
  [Symbol.dispose ?? Symbol('dispose')]() {
    this.close();
  }

  /// Bytes of WebAssembly memory that this model has.
  get memoryBytes() {
    return this.#opened().memory.buffer.byteLength;
  }

  // ---- memory ------------------------------------------------------------------------------------------------------

  #opened() {
    if (!this.#wasm) throw new FoveaError('model: expected one that is open, got one that was closed');
    return this.#wasm;
  }
  /// A trap leaves the module's stack as it was then: no other model gets it.
  #note(error) {
    this.#trapped ||= error instanceof WebAssembly.RuntimeError;
  }
  #check(failed) {
    if (failed === 1) throw new FoveaError(this.#line(this.#wasm.error_line()));
  }
  #take(nBytes) {
    const at = this.#wasm.take_memory(nBytes) >>> 0;
    if (at === 0) throw new FoveaError(`memory: expected room for ${nBytes} bytes more, got none`);
    return at;
  }
  #bytes(at, n) {
    return new Uint8Array(this.#wasm.memory.buffer, at >>> 0, n >>> 0);
  }
  #copy(Type, at, n) {
    return new Type(this.#wasm.memory.buffer, at >>> 0, n >>> 0).slice();
  }
  #text(at, nBytes) {
    return new TextDecoder().decode(this.#bytes(at, nBytes));
  }
  #line(at) {
    const bytes = new Uint8Array(this.#wasm.memory.buffer, at >>> 0);
    return new TextDecoder().decode(bytes.subarray(0, bytes.indexOf(0)));
  }
  #put(bytes) {
    const at = this.#take(bytes.byteLength);
    this.#bytes(at, bytes.byteLength).set(new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength));
    return {at, n: bytes.byteLength};
  }
  #putText(text, closed = false) {
    return this.#put(utf8.encode(closed ? `${text}\0` : text));
  }
  /// work(), whose memory is given back.
  #within(work) {
    const wasm = this.#opened(), top = wasm.memory_top();
    if (this.#busy) throw new FoveaError('model: expected one that makes no text, got one that does');
    try {
      return work(wasm);
    } catch (error) {
      this.#note(error);
      throw error;
    } finally {
      wasm.release_memory(top);
    }
  }
  #wants(kind) {
    this.#opened();
    if (this.info.kind !== kind) throw new FoveaError(`model: expected one that gives ${kind}, got one that gives ${this.info.kind}`);
  }

  // ---- tokens ------------------------------------------------------------------------------------------------------

  #tokens(text, how) {
    const wasm = this.#wasm, {at, n} = this.#putText(text);
    const nScratch = wasm.scratch_bytes(n), capacity = wasm.most_tokens(n);
    const scratch = this.#take(nScratch), tokens = this.#take(4 * capacity);
    const nTokens = wasm.tokenize(at, n, how, scratch, nScratch, tokens, capacity) >>> 0;
    if (nTokens === kFailed) this.#check(1);
    return this.#copy(Uint32Array, tokens, nTokens);
  }

  tokenize(text, {readSpecial = false, addSpecial = true} = {}) {
    return this.#within(() => this.#tokens(text, (readSpecial ? kReadSpecial : 0) + (addSpecial ? 0 : kNoSpecial)));
  }

  decode(tokens) {
    return this.#within((wasm) => {
      const decoder = this.#put(new Uint8Array(8)).at, n = Math.max(wasm.most_piece_bytes(), 8), out = this.#take(n);
      let text = '';
      for (const token of [...tokens, kNoToken]) text += this.#text(out, wasm.decode(decoder, token, out, n));
      return text;
    });
  }

  // ---- text --------------------------------------------------------------------------------------------------------

  /// Sets a text's options and begins it, in memory that lasts as long as the text.
  #start(tokens, {maxTokens = 0, stop = [], form, showSpecial = false, signal, onPrompt, ...sampling}) {
    const wasm = this.#wasm;
    wasm.clear_options();
    for (const [name, value] of Object.entries(sampling)) {
      if (value === undefined) continue;
      const field = name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
      if (typeof value !== 'number' || wasm.set_option(this.#putText(field, true).at, value) !== 0)
        throw new FoveaError(`${name}: expected an option of generate and a number, got ${JSON.stringify(value)}`);
    }
    if (form) this.#check(wasm.set_form(...Object.values(this.#put(form))));
    const stops = [stop].flat().flatMap((text) => Object.values(this.#putText(text)));
    this.#check(wasm.start_text(this.#put(tokens).at, tokens.length, maxTokens, this.#put(Uint32Array.from(stops)).at,
                                stops.length / 2, showSpecial));
  }

  #piece() {
    const wasm = this.#wasm;
    return {
      text: this.#text(wasm.piece_text(), wasm.piece_text_bytes()),
      tokens: this.#copy(Uint32Array, wasm.piece_tokens(), wasm.piece_token_count()),
      finish: kFinish[wasm.piece_finish()],
    };
  }

  async * #pieces(tokens, options) {
    const wasm = this.#opened(), {signal} = options;
    if (this.#busy) throw new FoveaError('model: expected one that makes no text, got one that does');
    this.#busy = true;
    const top = wasm.memory_top();
    try {
      signal?.throwIfAborted();
      this.#start(tokens, options);
      for (let since = performance.now();;) {
        const done = wasm.advance_text();
        this.#check(done);
        const piece = done === 2 ? this.#piece() : null;
        if (piece) yield piece;
        if (piece?.finish) return;
        if (performance.now() - since > kTurnMs) {
          await otherWork();
          since = performance.now();
        }
        signal?.throwIfAborted();
      }
    } catch (error) {
      this.#note(error);
      throw error;
    } finally {
      this.#busy = false;
      if (this.#wasm) wasm.release_memory(top);
    }
  }

  generate(prompt, options = {}) {
    this.#wants('text');
    const tokens = typeof prompt === 'string' ? this.tokenize(prompt + this.info.promptSuffix) : Uint32Array.from(prompt);
    return this.#pieces(tokens, options);
  }

  async complete(prompt, options = {}) {
    return whole(this.generate(prompt, options));
  }

  // ---- conversations -----------------------------------------------------------------------------------------------

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
    const {Template} = await import('@huggingface/jinja');
    return new Template(this.info.chatTemplate).render({
      messages, add_generation_prompt: true, bos_token: this.#tokenText(this.info.bos), eos_token: this.#tokenText(this.#firstEnd()), ...variables,
    });
  }

  async * chat(messages, {variables, ...options} = {}) {
    const text = await this.renderChat(messages, variables);
    yield * this.#pieces(this.tokenize(text, {readSpecial: true, addSpecial: false}), options);
  }

  async answer(messages, options = {}) {
    return whole(this.chat(messages, options));
  }

  #tokenText(token) {
    return token === null ? '' : this.#text(this.#wasm.token_text(token), this.#wasm.token_text_bytes(token));
  }
  #firstEnd() {
    for (let token = 0; this.#textEnds === null && token < this.info.vocabSize; ++token)
      if (this.#wasm.token_flags(token) & kEndToken) this.#textEnds = token;
    return this.#textEnds;
  }

  // ---- vectors, logits, attention ----------------------------------------------------------------------------------

  embed(texts) {
    this.#wants('vectors');
    const one = (text) => this.#within((wasm) => {
      const tokens = typeof text === 'string' ? this.#tokens(text, 0) : Uint32Array.from(text);
      const n = this.info.resultWidth * (this.info.pools ? 1 : tokens.length), out = this.#take(4 * n);
      this.#check(wasm.embed_tokens(this.#put(tokens).at, tokens.length, out, n));
      return this.#copy(Float32Array, out, n);
    });
    return Array.isArray(texts) ? texts.map(one) : one(texts);
  }

  logits(tokens, {piece = tokens.length} = {}) {
    this.#wants('text');
    return this.#within((wasm) => {
      const width = this.info.vocabSize, all = new Float32Array(tokens.length * width);
      const at = this.#put(Uint32Array.from(tokens)).at, out = this.#take(4 * piece * width);
      this.#check(wasm.rewind_text());
      for (let done = 0; done < tokens.length; done += piece) {
        const n = Math.min(piece, tokens.length - done);
        this.#check(wasm.compute_logits(at + 4 * done, n, out));
        all.set(this.#copy(Float32Array, out, n * width), done * width);
      }
      this.#check(wasm.rewind_text());
      return all;
    });
  }

  attention(text, {layer = 0, perHead = true} = {}) {
    return this.#within((wasm) => {
      const tokens = typeof text === 'string' ? this.#tokens(text, 0) : Uint32Array.from(text), length = tokens.length;
      const known = wasm.layer_heads(layer);
      if (known === 0) throw new FoveaError(`layer: expected one with attention, got ${layer}`);
      const heads = perHead ? known : 1, n = heads * length * length, out = this.#take(4 * n);
      const at = this.#put(tokens).at, isText = this.info.kind === 'text';
      const width = isText ? this.info.vocabSize * length : this.info.resultWidth * (this.info.pools ? 1 : length);
      const result = this.#take(4 * width);
      if (isText) this.#check(wasm.rewind_text());
      this.#check(wasm.capture_attention(layer, perHead, length, out, n));
      try {
        this.#check(isText ? wasm.compute_logits(at, length, result) : wasm.embed_tokens(at, length, result, width));
      } finally {
        wasm.capture_attention(0, 0, 0, 0, 0);
        if (isText) wasm.rewind_text();
      }
      return {tokens, shape: [heads, length, length], weights: this.#copy(Float32Array, out, n)};
    });
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

export const load = Model.load;
