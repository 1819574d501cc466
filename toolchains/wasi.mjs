// node wasi.mjs PROGRAM [ARGUMENT...]: runs a WebAssembly program that wants WASI, and ends with its status. Files have whole paths.
import {readFile} from 'node:fs/promises';
import {WASI} from 'node:wasi';

const args = process.argv.slice(2);
const wasi = new WASI({version: 'preview1', args, preopens: {'/': '/'}, returnOnExit: true});
const imports = {wasi_snapshot_preview1: wasi.wasiImport};
const {instance} = await WebAssembly.instantiate(await readFile(args[0]), imports);
process.exitCode = wasi.start(instance);
