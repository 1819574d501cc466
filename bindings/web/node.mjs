// Fovea in Node.js: models that run in the addon, or in WebAssembly where there is none for the machine. See README.md and fovea.d.mts.
import {packageOf} from './model.mjs';
import {nativeModule} from './native.mjs';
import {wasmModules} from './wasm.mjs';

export {FoveaError, Model} from './model.mjs';
export const {modules, load} = packageOf({...nativeModule, ...wasmModules});
