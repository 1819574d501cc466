/** A refusal, in one line: what was expected, and what was got. */
export class FoveaError extends Error {}

/** The package's modules: Node's addon, and those of WebAssembly by what they use: relaxed SIMD with a fused multiply-add, SIMD128, neither. */
export type ModuleName = 'native' | 'relaxed' | 'simd128' | 'scalar';

/** Those that this engine can run, the fastest first; "native" where the addon's package is installed. The results are the same in every bit. */
export const modules: readonly ModuleName[];

/**
 * A path (Node.js), a URL, or bytes of a .fovea file, which `fovea convert` makes. By path the addon also opens a GGUF file or a folder of
 * Hugging Face, which it converts once into the user's cache folder.
 */
export type Source = string | URL | ArrayBuffer | ArrayBufferView | Blob | Response | ReadableStream<Uint8Array> |
    AsyncIterable<Uint8Array>;

export interface LoadOptions {
  /** Called after each chunk: bytes so far, and all of them or null if nobody knows. */
  onProgress?(loaded: number, total: number | null): void;
  signal?: AbortSignal;
  /** Browsers keep a URL's file in their cache storage, by this name or "fovea" [true]. */
  cache?: boolean | string;
  /** Also compare every byte with its checksum [false]. */
  verify?: boolean;
  /** Tokens of a text with its answer [all that the model was made for]. */
  maxPositions?: number;
  /** Tokens of a prompt that are computed together; an abort waits for them [the engine's choice]. */
  batch?: number;
  /** How keys and values are cached ["f32"]. */
  cacheType?: 'f32' | 'f16' | 'q8' | 'q4';
  /** Of the addon alone: threads that compute [the machine's fast cores]. */
  threads?: number;
  /** The module [the first of `modules`]. */
  module?: ModuleName;
  /** Kernels: "relaxed_simd", "simd128" or "scalar", which every module has; the addon's as the command line's [the module's best]. */
  isa?: string;
}

export interface Info {
  readonly kind: 'text' | 'vectors' | 'attention';
  readonly name: string;
  readonly architecture: string;
  readonly promptSuffix: string;
  /** The model's own (Jinja); empty if it has none. */
  readonly chatTemplate: string;
  readonly fingerprint: number;
  readonly nLayers: number;
  readonly dModel: number;
  readonly vocabSize: number;
  readonly maxPositions: number;
  readonly nHeads: number;
  readonly nKvHeads: number;
  readonly headDim: number;
  /** Whether embed gives a vector for each text, or one for each token. */
  readonly pools: boolean;
  readonly hasTokenizer: boolean;
  readonly fileBytes: number;
  readonly resultWidth: number;
  readonly bos: number | null;
  readonly numericsVersion: number;
  /** Tokens that this model's memory has room for. */
  readonly contextLength: number;
  /** Bytes of the arena: all that the model needs beside its file. */
  readonly arenaBytes: number;
  readonly isa: string;
  readonly version: string;
}

/** How a token is chosen: as the command line's options, without which it is the likeliest. */
export interface Sampling {
  temperature?: number;
  topK?: number;
  topP?: number;
  minP?: number;
  /** A whole number; the same seed gives the same text on every machine. */
  seed?: number;
  repeatPenalty?: number;
  frequencyPenalty?: number;
  presencePenalty?: number;
  dryMultiplier?: number;
  dryBase?: number;
  dryAllowedLength?: number;
  topNSigma?: number;
  typicalP?: number;
  xtcProbability?: number;
  xtcThreshold?: number;
  mirostat?: number;
  mirostatTau?: number;
  mirostatEta?: number;
  minTokens?: number;
}

export interface GenerateOptions extends Sampling {
  /** New tokens at most [as many as there is room for]. */
  maxTokens?: number;
  /** The text ends before the first of these. */
  stop?: string | string[];
  /** A form that the answer fits: what `fovea grammar MODEL --json-schema FILE -o FORM` wrote. */
  form?: Uint8Array;
  showSpecial?: boolean;
  /** A schema that the answer, which is JSON, fits: an object or its text. Of the addon alone, which compiles it. */
  schema?: object | string;
  /** Ends the text between two passes, with the addon within a layer's time; the iterator then throws the signal's reason. */
  signal?: AbortSignal;
}

export interface Piece {
  /** Whole characters. */
  text: string;
  tokens: Uint32Array;
  /** Why the text ended, with its last piece: by itself, before a stop text, at maxTokens, or for want of room. */
  finish: 'end' | 'stop' | 'length' | 'context' | null;
}

export interface Message {
  role: string;
  content: string;
}

export interface ChatOptions extends GenerateOptions {
  /** Further variables of the template, as `tools`. */
  variables?: Record<string, unknown>;
}

/** A model in a module's memory. It makes one text at a time; load it twice for two. */
export class Model {
  private constructor();
  readonly info: Info;
  /** Bytes of WebAssembly memory, of which the file and the arena are most; with the addon those two alone. */
  readonly memoryBytes: number;
  /** Gives the memory to the next model. */
  close(): void;

  tokenize(text: string, options?: {readSpecial?: boolean; addSpecial?: boolean}): Uint32Array;
  decode(tokens: Iterable<number>): string;

  /** A prompt's continuation, in pieces. What the prompt has in common with the last text is not computed again. */
  generate(prompt: string | Iterable<number>, options?: GenerateOptions): AsyncGenerator<Piece, void, void>;
  /** The same as one piece. */
  complete(prompt: string | Iterable<number>, options?: GenerateOptions): Promise<Piece>;

  /** The answer to a conversation. A message that spells a special token is refused. */
  chat(messages: Message[], options?: ChatOptions): AsyncGenerator<Piece, void, void>;
  answer(messages: Message[], options?: ChatOptions): Promise<Piece>;
  /** The conversation as the model reads it. */
  renderChat(messages: Message[], variables?: Record<string, unknown>): Promise<string>;

  /** A text's vector, or if the model does not pool its tokens' vectors one after the other. */
  embed(text: string | Iterable<number>): Promise<Float32Array>;
  embed(texts: (string | Iterable<number>)[]): Promise<Float32Array[]>;

  /** The logits after each token, [tokens][vocabSize]; computed so many at once, which changes no bit. */
  logits(tokens: ArrayLike<number>, options?: {piece?: number}): Promise<Float32Array>;

  /** A layer's attention weights, [heads][queries][keys]; without perHead their mean, with one head. */
  attention(text: string | Iterable<number>, options?: {layer?: number; perHead?: boolean}):
      Promise<{tokens: Uint32Array; shape: [number, number, number]; weights: Float32Array}>;
}

export function load(source: Source, options?: LoadOptions): Promise<Model>;
