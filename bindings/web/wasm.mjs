// The core of a model in the memory of one WebAssembly module (src/web.c), in any engine of JavaScript.
import {FoveaError, infoOf} from './model.mjs';
import {reading} from './reading.mjs';

const isNode = typeof process !== 'undefined' && Boolean(process.versions?.node);
const utf8 = new TextEncoder();
const kFailed = 0xffffffff, kNoToken = 0xffffffff;
const kEndToken = 2;  // of fovea_token_flags
const kTurnMs = 12;   // after which other work of the thread has its turn

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

/// How the package's modules that this engine can run open a model, the fastest first.
export const wasmModules = Object.fromEntries([hasFusedSimd() && 'relaxed', hasSimd() && 'simd128', 'scalar'].filter(Boolean)
  .map((name) => [name, (source, options) => WasmCore.open(name, source, options)]));

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

class WasmCore {
  #instance;
  #wasm;
  #trapped = false;
  #textEnds = null;
  #top;      // of the memory, without a text's
  #turnAt;   // when other work had its last turn
  info;

  static async open(module, source, options) {
    const core = new WasmCore();
    core.#instance = await take(module);
    core.#wasm = core.#instance.exports;
    try {
      await core.#open(source, options);
      return core;
    } catch (error) {
      core.#note(error);
      core.close();
      throw error;
    }
  }

  /// Reads the file into the start of the memory and makes what computes behind it.
  async #open(source, {verify = false, maxPositions, batch, cacheType, isa, ...how}) {
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
    const name = isa && this.#putText(isa, true).at;
    this.#check(wasm.make_runtime(maxPositions, batch, cacheType, name));
    this.#top = wasm.memory_top();
    this.#readFacts();
  }

  #readFacts() {
    const wasm = this.#wasm, names = ['kind', 'fingerprint', 'nLayers', 'dModel', 'vocabSize', 'maxPositions', 'nHeads', 'nKvHeads',
      'headDim', 'pools', 'hasTokenizer', 'fileBytes', 'resultWidth', 'numericsVersion', 'bos'];
    const facts = Object.fromEntries(names.map((name, i) => [name, wasm.fact(i)]));
    ['name', 'architecture', 'promptSuffix', 'chatTemplate'].forEach(
        (name, i) => (facts[name] = this.#text(wasm.text_fact_at(i), wasm.text_fact_bytes(i))));
    facts.contextLength = wasm.max_positions() >>> 0;
    facts.arenaBytes = wasm.arena_bytes();
    facts.isa = this.#line(wasm.isa());
    facts.version = this.#line(wasm.version());
    this.info = infoOf(facts);
  }

  close() {
    if (!this.#instance) return;
    this.#wasm.forget_model();
    if (!this.#trapped) idle[this.#instance.name] = this.#instance;
    this.#instance = this.#wasm = null;
  }

  get memoryBytes() {
    return this.#wasm.memory.buffer.byteLength;
  }

  // ---- memory ------------------------------------------------------------------------------------------------------

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
  /// work(), after which memory is given back.
  #within(work) {
    const wasm = this.#wasm, top = wasm.memory_top();
    try {
      return work(wasm);
    } catch (error) {
      this.#note(error);
      throw error;
    } finally {
      wasm.release_memory(top);
    }
  }

  // ---- text --------------------------------------------------------------------------------------------------------

  tokenize(text, how) {
    return this.#within((wasm) => {
      const {at, n} = this.#putText(text), nScratch = wasm.scratch_bytes(n), capacity = wasm.most_tokens(n);
      const scratch = this.#take(nScratch), tokens = this.#take(4 * capacity);
      const nTokens = wasm.tokenize(at, n, how, scratch, nScratch, tokens, capacity) >>> 0;
      if (nTokens === kFailed) this.#check(1);
      return this.#copy(Uint32Array, tokens, nTokens);
    });
  }

  decode(tokens) {
    return this.#within((wasm) => {
      const decoder = this.#put(new Uint8Array(8)).at, n = Math.max(wasm.most_piece_bytes(), 8), out = this.#take(n);
      let text = '';
      for (const token of [...tokens, kNoToken]) text += this.#text(out, wasm.decode(decoder, token, out, n));
      return text;
    });
  }

  /// Sets a text's options and begins it, in memory that lasts until `end`.
  start({tokens, maxTokens, stops, form, schema, showSpecial, sampling}) {
    const wasm = this.#wasm;
    this.#turnAt = performance.now();
    if (schema) throw new FoveaError('schema: expected a form that was made beforehand, got a schema, which WebAssembly compiles none of');
    wasm.clear_options();
    for (const [name, value] of Object.entries(sampling))
      if (wasm.set_option(this.#putText(name, true).at, value) !== 0)
        throw new FoveaError(`${name}: expected an option of generate, got another name`);
    if (form) this.#check(wasm.set_form(...Object.values(this.#put(form))));
    const texts = stops.flatMap((text) => Object.values(this.#putText(text)));
    this.#check(wasm.start_text(this.#put(tokens).at, tokens.length, maxTokens, this.#put(Uint32Array.from(texts)).at,
                                stops.length, showSpecial));
  }

  /// The piece of the next pass, if it is no part of a prompt.
  async advance() {
    if (performance.now() - this.#turnAt > kTurnMs) {
      await otherWork();
      this.#turnAt = performance.now();
    }
    const wasm = this.#wasm;
    if (!wasm) throw new FoveaError('model: expected one that is open, got one that was closed');
    try {
      const done = wasm.advance_text();
      this.#check(done);
      return done === 2 ? [{
        text: this.#text(wasm.piece_text(), wasm.piece_text_bytes()),
        tokens: this.#copy(Uint32Array, wasm.piece_tokens(), wasm.piece_token_count()),
        finish: wasm.piece_finish(),
      }] : [];
    } catch (error) {
      this.#note(error);
      throw error;
    }
  }
  cancel() {}  // a text ends between two calls of advance
  end() {
    this.#wasm?.release_memory(this.#top);
  }

  async render(messages, variables) {
    const {Template} = await import('@huggingface/jinja');
    return new Template(this.info.chatTemplate).render({
      messages, add_generation_prompt: true, bos_token: this.#tokenText(this.info.bos), eos_token: this.#tokenText(this.#firstEnd()), ...variables,
    });
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

  embed(tokens) {
    return this.#within((wasm) => {
      const n = this.info.resultWidth * (this.info.pools ? 1 : tokens.length), out = this.#take(4 * n);
      this.#check(wasm.embed_tokens(this.#put(tokens).at, tokens.length, out, n));
      return this.#copy(Float32Array, out, n);
    });
  }

  logits(tokens, piece) {
    return this.#within((wasm) => {
      const width = this.info.vocabSize, all = new Float32Array(tokens.length * width);
      const at = this.#put(tokens).at, out = this.#take(4 * piece * width);
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

  attention(tokens, layer, perHead) {
    return this.#within((wasm) => {
      const length = tokens.length, known = wasm.layer_heads(layer);
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
      return {heads, weights: this.#copy(Float32Array, out, n)};
    });
  }
}
