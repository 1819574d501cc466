// The core of a model in Node's addon (src/addon.cpp), which a package for each platform brings. It maps files, and computes on a
// thread of its own.
import {mkdtemp, open, rm} from 'node:fs/promises';
import {createRequire} from 'node:module';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import {fileURLToPath} from 'node:url';
import {FoveaError, infoOf} from './model.mjs';
import {pathOf, reading} from './reading.mjs';

const addon = (() => {
  const require = createRequire(import.meta.url), name = `@fovea/fovea-${process.platform}-${process.arch}`;
  for (const built of [name, `${name}-musl`]) {
    try {
      return require(built);
    } catch (error) {  // none for this machine: WebAssembly
      if (error.code !== 'MODULE_NOT_FOUND')
        process.emitWarning(`${built} cannot be loaded, so WebAssembly computes: ${error.message}`);
    }
  }
})();

export const nativeModule = addon ? {native: (source, options) => NativeCore.open(source, options)} : {};

/// Calls a function of the addon, whose errors are refusals.
async function call(name, ...args) {
  try {
    return await addon[name](...args);
  } catch (error) {
    throw new FoveaError(error.message);
  }
}

/// path of a file with what the source gives, which `done` removes: the addon maps it.
async function fileOf(source, {onProgress, ...how}) {
  const {nBytes: expected, chunks} = await reading(source, {...how, cache: false});
  const folder = await mkdtemp(join(tmpdir(), 'fovea-'));
  const done = () => rm(folder, {recursive: true, force: true}).catch(() => {});  // Windows keeps a mapped file
  try {
    const path = join(folder, 'model.fovea'), file = await open(path, 'w+'), head = Buffer.alloc(5);
    try {
      let nBytes = 0;
      for await (const chunk of chunks) {
        await file.writeFile(chunk);
        nBytes += chunk.length;
        onProgress?.(nBytes, expected);
        how.signal?.throwIfAborted();
      }
      await file.read(head, 0, head.length, 0);
      if (head.toString() !== 'Fovea') throw new FoveaError('model: expected the bytes of a Fovea file, got others');
    } finally {
      await file.close();
    }
    return {path, done};
  } catch (error) {
    await done();
    throw error;
  }
}

class NativeCore {
  #handle = addon.make();
  info;

  static async open(source, {verify = false, threads = 0, signal, onProgress, ...how}) {
    const own = pathOf(source);
    const {path, done} = own === null ? await fileOf(source, {signal, onProgress}) : {path: own instanceof URL ? fileURLToPath(own) : own};
    const core = new NativeCore(), cancel = () => core.cancel(true);
    try {
      signal?.throwIfAborted();
      signal?.addEventListener('abort', cancel);
      core.info = infoOf(await call('open', core.#handle, {...how, path, verify, threads}));
      signal?.throwIfAborted();
      if (own !== null) onProgress?.(core.info.fileBytes, core.info.fileBytes);
      return core;
    } catch (error) {
      core.close();
      throw signal?.aborted ? signal.reason : error;
    } finally {
      signal?.removeEventListener('abort', cancel);
      await done?.();
    }
  }

  get memoryBytes() {
    return this.info.fileBytes + this.info.arenaBytes;
  }
  close() {
    addon.close(this.#handle);
  }
  cancel(cancelled) {
    addon.cancel(this.#handle, cancelled);
  }
  end() {}

  #now(name, ...args) {
    try {
      return addon[name](this.#handle, ...args);
    } catch (error) {
      throw new FoveaError(error.message);
    }
  }
  tokenize(text, how) {
    return this.#now('tokenize', text, how);
  }
  decode(tokens) {
    return this.#now('decode', tokens);
  }

  start({form = new Uint8Array(0), schema = '', ...text}) {
    return call('start', this.#handle, {...text, form, schema});
  }
  advance() {
    return call('advance', this.#handle);
  }
  render(messages, {tools, ...extra}) {
    return call('render', this.#handle, JSON.stringify(messages), tools ? JSON.stringify(tools) : '', JSON.stringify(extra));
  }
  embed(tokens) {
    return call('embed', this.#handle, tokens);
  }
  logits(tokens, piece) {
    return call('logits', this.#handle, tokens, piece);
  }
  attention(tokens, layer, perHead) {
    return call('attention', this.#handle, tokens, layer, perHead);
  }
}
