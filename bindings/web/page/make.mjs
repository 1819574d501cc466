// Puts the page together, as a folder of files that any web server may offer: node make.mjs PACKAGE OUT FILE... with the built package,
// and files to add (the demo's model and form).
import {createHash} from 'node:crypto';
import {copyFileSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync} from 'node:fs';
import {basename, dirname} from 'node:path';
import {fileURLToPath} from 'node:url';

const [built, out, ...files] = process.argv.slice(2);
const here = dirname(fileURLToPath(import.meta.url)), served = `${here}/../../../serve/page`;
rmSync(out, {recursive: true, force: true});
mkdirSync(out, {recursive: true});
for (const name of ['index.html', 'page.css', 'page.js', 'worker.js']) copyFileSync(`${here}/${name}`, `${out}/${name}`);
for (const name of ['attention.js', 'markdown.js']) copyFileSync(`${served}/${name}`, `${out}/${name}`);
for (const name of readdirSync(built))
  if (/\.(mjs|wasm)$/.test(name) && !/^(node|native)\./.test(name)) copyFileSync(`${built}/${name}`, `${out}/${name}`);
for (const file of files) copyFileSync(file, `${out}/${basename(file)}`);

// A worker has no map of names for imports, so the one name in the package becomes a path.
const library = readFileSync(`${out}/wasm.mjs`, 'utf8'), name = `'@huggingface/jinja'`;
if (!library.includes(name)) throw new Error(`wasm.mjs: expected an import of ${name}, got none`);
writeFileSync(`${out}/wasm.mjs`, library.replace(name, `'./jinja.js'`));
copyFileSync(`${built}/node_modules/@huggingface/jinja/dist/index.js`, `${out}/jinja.js`);

const kept = readdirSync(out).filter((name) => !/\.wasm$|^offline\.js$/.test(name));
const hash = createHash('sha256');
for (const name of readdirSync(out).filter((name) => name !== 'offline.js')) hash.update(name).update(readFileSync(`${out}/${name}`));
const offline = readFileSync(`${here}/offline.js`, 'utf8')
  .replace('kFiles = []', `kFiles = ${JSON.stringify(['./', ...kept])}`).replace(`kName = ''`, `kName = 'fovea-page-${hash.digest('hex').slice(0, 16)}'`);
writeFileSync(`${out}/offline.js`, offline);
