// A server on this machine's own address, for pages that compare packages.
import {createReadStream, existsSync, statSync} from 'node:fs';
import http from 'node:http';

const kTypes = {js: 'text/javascript', mjs: 'text/javascript', wasm: 'application/wasm', json: 'application/json'};

/// places: what addresses begin with, and the file or folder (with a slash behind) that stands there. At any other one is an empty
/// page. {server, address}.
export async function serveFolders(places) {
  const server = http.createServer((request, response) => {
    const url = new URL(request.url, 'http://a').pathname, place = Object.keys(places).find((start) => url.startsWith(start));
    response.setHeader('content-type', 'text/html');
    if (!place) return response.end('<!doctype html><link rel="icon" href="data:,">');
    const path = places[place] + url.slice(place.length);
    if (!existsSync(path)) return response.writeHead(404).end();
    response.setHeader('content-type', kTypes[path.split('.').at(-1)] ?? 'application/octet-stream');
    response.setHeader('content-length', statSync(path).size);
    request.method === 'HEAD' ? response.end() : createReadStream(path).pipe(response);
  });
  await new Promise((done) => server.listen(0, '127.0.0.1', done));
  return {server, address: `http://127.0.0.1:${server.address().port}/`};
}
