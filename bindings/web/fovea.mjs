// Fovea in browsers and workers: models that run in WebAssembly. See README.md and fovea.d.mts. In Node.js the package is node.mjs.
import {packageOf} from './model.mjs';
import {wasmModules} from './wasm.mjs';

export {FoveaError, Model} from './model.mjs';
export const {modules, load} = packageOf(wasmModules);
