// The page's model, on a thread of its own: answers {id, ...} for each {id, work, ...}, and {id, piece} or {id, read} on the way.
import {load, modules} from './fovea.mjs';

const kMostAttended = 192;  // tokens; beyond, their pictures are too fine and take long
let model = null, form = null, text = null, stopping = null;

const factsOf = () => ({info: {...model.info}, memoryBytes: model.memoryBytes, module: modules[0]});

const works = {
  /// A file of the page's own, or one that the person chose.
  async open({file, formOf}, tell) {
    const options = {cache: false, signal: stopping.signal, onProgress: (read, all) => tell({read, all})};
    // Of a long context this much is enough here; a model made for less refuses it.
    const opened = await load(file ?? 'demo.fovea', file ? {...options, maxPositions: 2048} : options).catch((error) => {
      if (!file || stopping.signal.aborted) throw error;
      return load(file, options);
    });
    model?.close();
    [model, text] = [opened, null];
    form = formOf ? new Uint8Array(await (await fetch(formOf)).arrayBuffer()) : null;
    return factsOf();
  },

  async ask({prompt}, tell) {
    text = null;
    if (model.info.kind !== 'text') return embed(prompt);
    const chats = Boolean(model.info.chatTemplate), messages = [{role: 'user', content: prompt}];
    const written = chats ? await model.renderChat(messages) : prompt + model.info.promptSuffix;
    const read = model.tokenize(written, chats ? {readSpecial: true, addSpecial: false} : {}), made = [], times = [];
    const options = {signal: stopping.signal, ...(form && {form})};
    let since = performance.now(), finish = null;
    for await (const piece of model.generate(read, options)) {
      const now = performance.now();
      times.push(now - since);
      since = now;
      made.push(...piece.tokens);
      finish = piece.finish;
      tell({piece: piece.text});
    }
    text = Uint32Array.of(...read, ...made);
    return {nRead: read.length, nMade: made.length, times, finish};
  },

  /// The weights of all heads of a layer, and what the tokens say.
  async attention({layer}) {
    const seen = text.subarray(0, kMostAttended), {shape, weights} = await model.attention(seen, {layer});
    const tokens = Array.from(seen, (token) => model.decode([token]));
    return {tokens, shape, weights, left: text.length - seen.length};
  },
};

async function embed(prompt) {
  const since = performance.now(), vector = await model.embed(prompt);
  text = model.tokenize(prompt);
  return {nRead: text.length, nMade: 0, times: [performance.now() - since], vector};
}

onmessage = async ({data: {id, work, ...how}}) => {
  if (work === 'stop') return stopping?.abort();
  if (work !== 'attention') stopping = new AbortController();
  try {
    postMessage({id, ...await works[work](how, (news) => postMessage({id, news}))});
  } catch (error) {
    postMessage({id, error: error.name === 'AbortError' ? 'Stopped.' : error.message});
  }
};
