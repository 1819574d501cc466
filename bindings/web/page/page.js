// The page: a command on its way to an answer, what every head looked at meanwhile, and what it cost. The model is worker.js's.
import {attentionOf} from './attention.js';
import {element} from './markdown.js';

const $ = (id) => document.getElementById(id);
const kDemoPrompts = ['turn on the reading lamp in the bedroom', 'dim the kitchen lights to 30 percent', 'wake me up at 7 am',
  'remind me to water the plants in two hours', 'put milk and eggs on the shopping list'];
const kDemo = {formOf: 'home.form'};
const worker = new Worker('worker.js', {type: 'module'}), calls = new Map();
let running = null, asked = 0, facts = null;

worker.onmessage = ({data: {id, news, error, ...result}}) => {
  const {resolve, reject, tell} = calls.get(id);
  if (news) return tell?.(news);
  calls.delete(id);
  error === undefined ? resolve(result) : reject(new Error(error));
};
worker.onerror = () => ($('notice').textContent = 'This browser could not start the model: expected WebAssembly and module workers.');

let nCalls = 0;
const call = (work, how = {}, tell = null) => new Promise((resolve, reject) => {
  calls.set(++nCalls, {resolve, reject, tell});
  worker.postMessage({id: nCalls, work, ...how});
});

const stop = () => worker.postMessage({work: 'stop'});

const size = (bytes) => bytes < 1e6 ? `${(bytes / 1e3).toFixed(0)} KB` : `${(bytes / 1e6).toFixed(bytes < 1e7 ? 2 : 1)} MB`;
const time = (ms) => ms < 1000 ? `${ms.toFixed(ms < 10 ? 1 : 0)} ms` : `${(ms / 1000).toFixed(1)} s`;

/// While something runs, the button stops it.
function setRunning(what) {
  running = what;
  $('send').textContent = running === 'ask' ? 'Stop' : 'Run';
  $('send').disabled = !facts || running === 'open';
  $('stop').hidden = running !== 'open' || !facts;
  $('file').disabled = Boolean(running);
  document.body.classList.toggle('running', Boolean(running));
}

// ---- a model -------------------------------------------------------------------------------------------------------

async function open(what) {
  $('notice').textContent = '';
  setRunning('open');
  $('progress').hidden = false;
  try {
    facts = await call('open', what, ({read, all}) => {
      $('progress').max = all ?? 1;
      all ? ($('progress').value = read) : $('progress').removeAttribute('value');
    });
    showModel(!what.file, what.file?.name);
  } catch (error) {
    const isGguf = /\.gguf$/i.test(what.file?.name ?? '');
    $('notice').textContent = error.message + (isGguf ? ': a GGUF file is converted first, see below' : '');
  }
  $('progress').hidden = true;
  setRunning(null);
}

function showModel(isDemo, name) {
  const {info} = facts, isText = info.kind === 'text';
  $('ask-title').textContent = isDemo ? 'A home command becomes JSON' : isText ? `${name} writes` : `${name} makes a vector`;
  $('text-label').textContent = isDemo ? 'Command' : 'Text';
  $('demo').hidden = isDemo;
  $('prompts').replaceChildren(...(isDemo ? kDemoPrompts : []).map((prompt) => element('li', {},
    element('button', {type: 'button', textContent: prompt, onclick: () => ask(prompt)}))));
  $('text').value = isDemo ? kDemoPrompts[0] : '';
  clear();
  showMemory();
}

function showMemory() {
  const {info, memoryBytes} = facts, rest = memoryBytes - info.fileBytes - info.arenaBytes;
  $('facts').hidden = false;
  for (const [part, bytes] of [['file', info.fileBytes], ['arena', info.arenaBytes]])
    $('bar').querySelector(`.${part}`).style.setProperty('--share', bytes / memoryBytes);
  const rows = [
    ['file', 'The model’s file', `${size(info.fileBytes)}, used in place`],
    ['arena', 'Its arena', `${info.arenaBytes.toLocaleString('en')} bytes, known before any is taken`],
    ['rest', 'Program, stack, scratch', size(rest)],
    ['', 'Room for', info.kind === 'text' ? `${info.contextLength} tokens of text and answer` : `${info.maxPositions} tokens`],
    ['', 'Shape', `${info.architecture}, ${info.nLayers} layers, ${info.nHeads} heads, ${info.dModel} wide`],
    ['', 'Kernels', `${info.isa}, Fovea ${info.version}: the same bits on every machine`],
  ];
  $('memory').replaceChildren(...rows.map(([kind, what, how]) => element('div', {className: kind}, element('dt', {}, what), element('dd', {}, how))));
}

// ---- an answer -----------------------------------------------------------------------------------------------------

function clear() {
  ++asked;
  $('answer').textContent = $('cost').textContent = $('status').textContent = $('notice').textContent = '';
  $('looks').hidden = $('time').hidden = true;
}

async function ask(prompt) {
  if (running || !facts || !prompt.trim()) return;
  $('text').value = prompt;
  clear();
  const mine = asked;
  setRunning('ask');
  try {
    const result = await call('ask', {prompt}, ({piece}) => $('answer').append(piece));
    if (result.vector) showVector(result.vector);
    showCost(result);
    $('status').textContent = `The answer: ${$('answer').textContent}`;
    setRunning(null);
    await showAttention(result, mine);
  } catch (error) {
    if (mine !== asked) return;
    $('notice').textContent = error.message;
    setRunning(null);
  }
}

function showVector(vector) {
  const width = facts.info.resultWidth, first = Array.from(vector.subarray(0, 8), (x) => x.toFixed(4));
  $('answer').textContent = `[${first.join(', ')}, …]  ${vector.length / width} × ${width} numbers`;
}

function showCost({nRead, nMade, times}) {
  const [first, ...each] = times, rate = each.length / each.reduce((a, b) => a + b, 0) * 1000;
  const parts = [`${nRead} tokens read, ${nMade} written`, `first after ${time(first)}`];
  if (each.length) parts.push(`${rate.toFixed(rate < 10 ? 1 : 0)} tokens a second`);
  $('cost').textContent = parts.join(' · ');
  $('time').hidden = times.length < 2;
  const most = Math.max(...times);
  $('times').replaceChildren(...times.map((ms, i) => {
    const bar = element('span', {title: `${i ? `Token ${i + 1}` : `The prompt and token 1`}: ${time(ms)}`});
    bar.style.setProperty('--share', ms / most);
    return bar;
  }));
  $('times').ariaLabel = `Time of each token: the first ${time(first)}, the slowest of the others ${time(Math.max(...each, 0))}`;
  $('time-note').textContent = `Each token’s time. The first bar (${time(first)}) has the prompt’s ${nRead} tokens in it.`;
}

// ---- attention -----------------------------------------------------------------------------------------------------

/// Rows of a head of a layer's weights; a row that later tokens are hidden from is as long as what it sees.
function rowsOf({shape: [, n], weights}, head) {
  const isCausal = facts.info.kind === 'text';
  return Array.from({length: n}, (_, query) =>
    Array.from(weights.subarray((head * n + query) * n, (head * n + query) * n + (isCausal ? query + 1 : n))));
}

function meanOf(layer) {
  const [heads, n] = layer.shape, mean = new Float32Array(n * n);
  layer.weights.forEach((weight, i) => (mean[i % (n * n)] += weight / heads));
  return {shape: [1, n, n], weights: mean};
}

function drawHead(canvas, layer, head) {
  const [, n] = layer.shape, image = new ImageData(n, n);
  const [red, green, blue] = getComputedStyle(canvas).color.match(/[\d.]+/g).map(Number);
  for (let query = 0; query < n; ++query) {
    const row = layer.weights.subarray((head * n + query) * n, (head * n + query + 1) * n), most = Math.max(...row, 1e-9);
    row.forEach((weight, key) => image.data.set([red, green, blue, 255 * Math.sqrt(weight / most)], 4 * (query * n + key)));
  }
  canvas.width = canvas.height = n;
  canvas.getContext('2d').putImageData(image, 0, 0);
}

async function showAttention({nRead}, mine) {
  const layers = [], layerOf = async (i) => (layers[i] ??= await call('attention', {layer: i}));
  const first = await layerOf(0).catch(() => null);  // a layer may have none
  if (!first || mine !== asked) return;
  const n_layers = facts.info.nLayers, n_heads = first.shape[0];
  $('looks').hidden = false;
  const view = attentionOf(async ({layer, head}) => {
    const found = await layerOf(layer), weights = head === null ? rowsOf(meanOf(found), 0) : rowsOf(found, Math.min(head, found.shape[0] - 1));
    choose(layer, head);
    return {tokens: found.tokens, weights, n_prompt_tokens: nRead, n_layers, n_heads};
  });
  $('one').replaceChildren(view);
  const buttons = [];
  const choose = (layer, head) => buttons.forEach((button) => {
    const isIt = button.layer === layer && (button.head === head || head === null);
    button.setAttribute('aria-pressed', String(isIt));
    button.tabIndex = button.layer === layer && button.head === (head ?? 0) ? 0 : -1;
  });
  const pick = (layer, head) => {
    for (const [name, value] of [['layer', layer], ['head', head]]) view.querySelector(`.${name}`).value = value;
    view.querySelector('.layer').dispatchEvent(new Event('change'));
  };
  const lines = Array.from({length: n_layers}, (_, layer) => element('div', {className: 'line'}, element('span', {}, `Layer ${layer}`)));
  $('heads').replaceChildren(...lines);
  $('heads').onkeydown = (event) => {
    const {layer, head} = document.activeElement;
    const [toLayer, toHead] = {ArrowLeft: [layer, head - 1], ArrowRight: [layer, head + 1], ArrowUp: [layer - 1, head], ArrowDown: [layer + 1, head]}[
      event.key] ?? [];
    const to = buttons.find((button) => button.layer === toLayer && button.head === toHead);
    if (toLayer !== undefined) event.preventDefault();
    if (!to) return;
    to.focus();
    pick(toLayer, toHead);
  };
  for (let i = 0; i < n_layers; ++i) {
    const layer = await layerOf(i).catch(() => null);
    if (mine !== asked) return;
    for (let head = 0; layer && head < layer.shape[0]; ++head) {
      const canvas = element('canvas'), button = element('button', {type: 'button', ariaLabel: `Layer ${i}, head ${head}`,
        title: `Layer ${i}, head ${head}`, onclick: () => pick(i, head), tabIndex: buttons.length ? -1 : 0}, canvas);
      buttons.push(Object.assign(button, {layer: i, head, draw: () => drawHead(canvas, layer, head)}));
      lines[i].append(button);
      button.draw();
    }
    if (i === 0) choose(0, null);
  }
}

const redraw = () => {
  for (const button of $('heads').querySelectorAll('button')) button.draw();
  $('one').querySelector('.layer')?.dispatchEvent(new Event('change'));
};

// ---- what the person does ------------------------------------------------------------------------------------------

$('form').addEventListener('submit', (event) => {
  event.preventDefault();
  running === 'ask' ? stop() : ask($('text').value);
});
$('text').addEventListener('keydown', (event) => {
  if (event.key === 'Escape' && running === 'ask') stop();
  if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return;
  event.preventDefault();
  $('form').requestSubmit();
});
$('stop').addEventListener('click', () => stop());
$('demo').addEventListener('click', () => running || open(kDemo));
$('file').addEventListener('change', () => {
  const [file] = $('file').files;
  if (file && !running) open({file});
  $('file').value = '';
});
addEventListener('dragover', (event) => event.preventDefault());
addEventListener('drop', (event) => {
  event.preventDefault();
  const [file] = event.dataTransfer.files;
  if (file && !running) open({file});
});

const theme = $('theme');
theme.value = localStorage.getItem('theme') ?? '';
const setTheme = () => {
  document.documentElement.className = theme.value;
  localStorage.setItem('theme', theme.value);
  redraw();
};
theme.addEventListener('change', setTheme);
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', redraw);
setTheme();

await open(kDemo);
// After the first visit the page needs no network: what it has used is kept.
if (facts && 'serviceWorker' in navigator)
  await navigator.serviceWorker.register(`offline.js?module=${facts.module}`).catch(() => null);
