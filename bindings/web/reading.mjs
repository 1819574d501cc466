// What a model is loaded from, as chunks of bytes and how many there will be.

const isNode = typeof process !== 'undefined' && Boolean(process.versions?.node);

async function * ofStream(stream) {
  const reader = stream.getReader();
  let ended = false;
  try {
    for (;;) {
      const {done, value} = await reader.read();
      if (done) {
        ended = true;
        return;
      }
      yield value;
    }
  } finally {
    if (!ended) await reader.cancel().catch(() => {});
  }
}

function ofResponse(response, url) {
  if (!response.ok) throw new Error(`${url}: expected a model, got status ${response.status}`);
  // Of a compressed answer the header counts other bytes than arrive.
  const length = response.headers.get('content-encoding') ? null : Number(response.headers.get('content-length')) || null;
  return {nBytes: length, chunks: ofStream(response.body)};
}

async function ofFile(path) {
  const {open} = await import('node:fs/promises');
  const file = await open(path);
  const {size} = await file.stat();
  return {nBytes: size, chunks: file.createReadStream({highWaterMark: 1 << 20})};
}

async function* untilDone(chunks, last) {
  yield* chunks;
  await last;
}

/// From a cache of the browser's, which gets the file first if it does not have it. A page without caches loads as ever.
async function ofUrl(url, {cache, signal}) {
  const name = cache === true ? 'fovea' : cache;
  const store = name && typeof caches !== 'undefined' ? await caches.open(name).catch(() => null) : null;
  const kept = await store?.match(url);
  if (kept) return ofResponse(kept, url);
  const response = await fetch(url, {signal});
  if (!store || !response.ok) return ofResponse(response, url);
  const put = store.put(url, response.clone()).catch(() => {});  // it may have no room left
  const {nBytes, chunks} = ofResponse(response, url);
  return {nBytes, chunks: untilDone(chunks, put)};  // who loads it again at once finds it
}

/// The path or file URL that a source is in Node.js, or null.
export function pathOf(source) {
  const isName = typeof source === 'string' || source instanceof URL, text = String(isName ? source : '');
  if (!isNode || !isName || /^(https?|blob|data):/.test(text)) return null;
  return text.startsWith('file:') ? new URL(text) : text;
}

/// {nBytes, chunks}; nBytes is null if nobody knows.
export async function reading(source, {cache = true, signal} = {}) {
  if (source instanceof ArrayBuffer) source = new Uint8Array(source);
  if (ArrayBuffer.isView(source)) {
    const bytes = new Uint8Array(source.buffer, source.byteOffset, source.byteLength);
    return {nBytes: bytes.length, chunks: [bytes]};
  }
  if (typeof Blob !== 'undefined' && source instanceof Blob) return {nBytes: source.size, chunks: ofStream(source.stream())};
  if (typeof Response !== 'undefined' && source instanceof Response) return ofResponse(source, source.url);
  if (typeof ReadableStream !== 'undefined' && source instanceof ReadableStream) return {nBytes: null, chunks: ofStream(source)};
  if (source?.[Symbol.asyncIterator]) return {nBytes: null, chunks: source};
  if (typeof source !== 'string' && !(source instanceof URL))
    throw new TypeError(`model: expected a path, a URL, bytes or a stream, got ${typeof source}`);
  const path = pathOf(source);
  return path === null ? ofUrl(String(source), {cache, signal}) : ofFile(path);
}
