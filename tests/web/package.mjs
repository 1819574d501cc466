// What the tests of the npm package share: the package as it was built, the command line, models that it converts.
import {execFileSync} from 'node:child_process';
import {existsSync, mkdirSync} from 'node:fs';
import {fileURLToPath} from 'node:url';

export const root = fileURLToPath(new URL('../..', import.meta.url)).replace(/\/$/, '');
const cli = process.env.FOVEA ?? `${root}/build/release/fovea`;
export const folder = process.env.PACKAGE ?? `${root}/build/web/package`;
export const models = `${folder}/../models`;
mkdirSync(models, {recursive: true});
export const demo = `${root}/tools/demo/demo.fovea`;
export const {load, modules, FoveaError} = await import(`${folder}/node.mjs`);
/// The kernels of each module of WebAssembly; the addon has the machine's best.
export const isaOf = {relaxed: 'relaxed_simd', simd128: 'simd128', scalar: 'scalar'};

export const fovea = (...args) => execFileSync(cli, args, {encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'], maxBuffer: 1 << 28});

/// A file of a model in tests/golden, or of the demo's with a type of weights.
export function modelOf(name) {
  const path = `${models}/${name.replaceAll('/', '_')}.fovea`;
  const source = name.includes('/') ? [`${root}/tests/golden/${name}`, '--type', 'f32'] : [demo, '--type', name];
  if (!existsSync(path)) fovea('convert', ...source, '-o', path);
  return path;
}

/// FNV-1a over the words of numbers, as `fovea certify` prints it.
export function hashOf(floats) {
  let hash = 0xcbf29ce484222325n;
  for (const word of new Uint32Array(floats.buffer)) hash = BigInt.asUintN(64, (hash ^ BigInt(word)) * 0x100000001b3n);
  return hash.toString(16).padStart(16, '0');
}
