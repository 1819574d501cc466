// Keeps the page's files, so that it opens without a network. make.mjs fills in which they are and a name that changes with them. Of the
// modules the one is kept that the page said it runs.
const kFiles = [];
const kName = '';
const kModule = new URL(location).searchParams.get('module');

addEventListener('install', (event) => event.waitUntil((async () => {
  const cache = await caches.open(kName), wanted = [...kFiles, `fovea-${kModule}.wasm`];
  await cache.addAll(wanted.map((file) => new Request(file, {cache: 'no-cache'})));
})()));

addEventListener('activate', (event) => event.waitUntil((async () => {
  const old = (await caches.keys()).filter((name) => name.startsWith('fovea-page-') && name !== kName);
  await Promise.all(old.map((name) => caches.delete(name)));
  await clients.claim();
})()));

addEventListener('fetch', (event) => {
  const {request} = event;
  if (request.method !== 'GET' || new URL(request.url).origin !== location.origin) return;
  event.respondWith((async () => {
    const cache = await caches.open(kName);
    return await cache.match(request, {ignoreSearch: true}) ?? fetch(request);
  })());
});
