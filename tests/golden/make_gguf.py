#!/usr/bin/env python3
"""Makes the small GGUF files of tests/golden/gguf, and what other programs make of them.

NAME.gguf with NAME_logits.npy, float32 [n_tokens, vocab_size], for tokens (7·i + 3) mod vocab_size: random models whose
tensors the `gguf` package quantizes; transformers computes the logits, in float64, from what the same package
dequantizes. bitnet_i2_s.gguf has bitnet.cpp's matrices. bert*.gguf are encoders: NAME_rows.npy has the last layer's
rows for those tokens, bert_texts.npy the normalized mean of the rows of each line of encoders/bert_sentence/texts.txt.
blocks.gguf with blocks.npy: a tensor of each type, of random bytes, and the package's floats. The tokenizer_NAME.gguf:
vocabularies without a model, of the tokenizer_NAME.json beside, and one by the `sentencepiece` package;
tokenizer_NAME_crc.json has CRC-32s of the ids that `tokenizers` and `sentencepiece` give the texts of
tokenizer_texts.json. Everything is seeded.

Needs gguf, numpy, torch, tokenizers, transformers 5 and sentencepiece.
"""
import io
import json
import pathlib
import zlib

import gguf
import numpy
import sentencepiece
import torch
from gguf import GGMLQuantizationType as T
from tokenizers import Tokenizer
from transformers import (BertConfig, BertModel, BertTokenizer, BitNetConfig, BitNetForCausalLM, GPT2Config,
                          GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM, Qwen2Config, Qwen2ForCausalLM, Qwen3Config,
                          Qwen3ForCausalLM)

import make_encoders
from make_models import randomize, rope
from make_tokenizers import SENTENCES

HERE = pathlib.Path(__file__).resolve().parent
FOLDER = HERE / "gguf"
N_TOKENS = 24
KINDS = {"normal": 1, "unknown": 2, "control": 3, "user": 4, "unused": 5, "byte": 6}

LLAMA_NAMES = {
    "model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output",
    "input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm", "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v", "self_attn.o_proj": "attn_output",
    "self_attn.q_norm": "attn_q_norm", "self_attn.k_norm": "attn_k_norm", "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down"}
BITNET_NAMES = LLAMA_NAMES | {"self_attn.attn_sub_norm": "attn_sub_norm", "mlp.ffn_sub_norm": "ffn_sub_norm"}
GPT2_NAMES = {
    "transformer.wte": "token_embd", "transformer.wpe": "position_embd", "transformer.ln_f": "output_norm",
    "ln_1": "attn_norm", "ln_2": "ffn_norm", "attn.c_attn": "attn_qkv", "attn.c_proj": "attn_output",
    "mlp.c_fc": "ffn_up", "mlp.c_proj": "ffn_down"}
BERT_NAMES = {
    "embeddings.word_embeddings": "token_embd", "embeddings.position_embeddings": "position_embd",
    "embeddings.token_type_embeddings": "token_types", "embeddings.LayerNorm": "token_embd_norm",
    "attention.self.query": "attn_q", "attention.self.key": "attn_k", "attention.self.value": "attn_v",
    "attention.output.dense": "attn_output", "attention.output.LayerNorm": "attn_output_norm",
    "intermediate.dense": "ffn_up", "output.dense": "ffn_down", "output.LayerNorm": "layer_output_norm"}


def name_of(parameter, names):
    stem, kind = parameter.rsplit(".", 1)
    parts = stem.split(".")
    numbers = [i for i, part in enumerate(parts) if part.isdigit()]
    if numbers:
        return f"blk.{parts[numbers[0]]}.{names['.'.join(parts[numbers[0] + 1:])]}.{kind}"
    return f"{names[stem]}.{kind}"


def pairs_adjacent(rows, n_heads):
    """Llama's rows as GGUF has them: dim i of a head's half next to dim i of the other half."""
    return rows.reshape(n_heads, 2, rows.shape[0] // n_heads // 2, -1).swapaxes(1, 2).reshape(rows.shape)


def halves(rows, n_heads):
    return rows.reshape(n_heads, rows.shape[0] // n_heads // 2, 2, -1).swapaxes(1, 2).reshape(rows.shape)


def add_settings(writer, config, architecture):
    writer.add_name("random")
    writer.add_block_count(config.num_hidden_layers)
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_head_count(config.num_attention_heads)
    if architecture == "gpt2":
        writer.add_feed_forward_length(4 * config.hidden_size)
        writer.add_layer_norm_eps(config.layer_norm_epsilon)
        return
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_key_length(config.head_dim)
    writer.add_value_length(config.head_dim)
    writer.add_rope_dimension_count(config.head_dim)
    settings = config.rope_parameters
    writer.add_rope_freq_base(settings["rope_theta"])
    if settings["rope_type"] in ("linear", "yarn"):
        writer.add_rope_scaling_type(gguf.RopeScalingType(settings["rope_type"]))
        writer.add_rope_scaling_factor(settings["factor"])
    if settings["rope_type"] == "yarn":
        writer.add_rope_scaling_orig_ctx_len(settings["original_max_position_embeddings"])


def make(name, architecture, model_class, config, seed, types, edit=None):
    """`types`: what the matrices are stored as, in turn."""
    config._attn_implementation = "eager"
    model = model_class(config).eval()
    randomize(model, seed)
    writer = gguf.GGUFWriter(FOLDER / f"{name}.gguf", architecture)
    add_settings(writer, config, architecture)
    if getattr(config, "rope_parameters", None) and config.rope_parameters["rope_type"] == "llama3":
        plain = config.rope_parameters["rope_theta"] ** (
            -torch.arange(0, config.head_dim, 2, dtype=torch.float64) / config.head_dim)
        writer.add_tensor("rope_freqs.weight", (plain / model.model.rotary_emb.inv_freq.double()).float().numpy())
    n_matrices = 0
    for parameter, values in model.named_parameters():
        stored = name_of(parameter, GPT2_NAMES if architecture == "gpt2" else LLAMA_NAMES)
        rows = values.detach().numpy()
        transposed = architecture == "gpt2" and "c_" in parameter and rows.ndim == 2
        turned = architecture == "llama" and (".attn_q." in stored or ".attn_k." in stored)
        n_heads = config.num_attention_heads
        if ".attn_k." in stored:
            n_heads = config.num_key_value_heads
        if transposed:
            rows = rows.T
        if turned:
            rows = pairs_adjacent(rows, n_heads)
        type_ = T.F32
        if rows.ndim == 2:
            type_ = types[n_matrices % len(types)]
            n_matrices += 1
        data = gguf.quantize(numpy.ascontiguousarray(rows), type_)
        writer.add_tensor(stored, data, raw_dtype=type_)
        rows = gguf.dequantize(data, type_).reshape(rows.shape)
        if turned:
            rows = halves(rows, n_heads)
        if transposed:
            rows = rows.T
        values.data = torch.tensor(rows.copy())
    if edit:
        edit(writer)
    finish(writer)
    tokens = torch.tensor([[(7 * i + 3) % config.vocab_size for i in range(N_TOKENS)]])
    with torch.no_grad():
        logits = model.double()(tokens, use_cache=False).logits[0]
    numpy.save(FOLDER / f"{name}_logits.npy", logits.float().numpy())


def finish(writer):
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def make_models():
    llama = dict(vocab_size=61, hidden_size=64, intermediate_size=96, num_hidden_layers=2, num_attention_heads=4,
                 num_key_value_heads=2, head_dim=16, max_position_embeddings=64, rms_norm_eps=1e-5)
    scaled = rope("llama3", 500.0, factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
                  original_max_position_embeddings=16)
    make("llama_q8_0", "llama", LlamaForCausalLM,
         LlamaConfig(**llama, tie_word_embeddings=True, rope_parameters=scaled), 21, [T.Q8_0],
         lambda writer: writer.add_chat_template("{{ messages }}"))
    yarn = rope("yarn", factor=4.0, original_max_position_embeddings=1024)
    make("llama_yarn", "llama", LlamaForCausalLM,
         LlamaConfig(**{**llama, "hidden_size": 32, "intermediate_size": 44, "max_position_embeddings": 4096},
                     tie_word_embeddings=False, attention_bias=True, mlp_bias=True, rope_parameters=yarn), 22,
         [T.BF16, T.F16, T.F32])
    make("llama_linear", "llama", LlamaForCausalLM,
         LlamaConfig(**{**llama, "num_hidden_layers": 1}, tie_word_embeddings=True,
                     rope_parameters=rope("linear", factor=2.5)), 23, [T.Q4_1, T.Q5_1])
    make("qwen2_q4_0", "qwen2", Qwen2ForCausalLM,
         Qwen2Config(**llama, tie_word_embeddings=False, rope_parameters=rope("default", 1e6)), 24, [T.Q4_0])
    make("qwen3", "qwen3", Qwen3ForCausalLM,
         Qwen3Config(**{**llama, "head_dim": 32}, tie_word_embeddings=True, rope_parameters=rope("default", 1e6)), 25,
         [T.Q5_0, T.Q8_0, T.F16])
    make("gpt2", "gpt2", GPT2LMHeadModel,
         GPT2Config(vocab_size=61, n_positions=32, n_embd=64, n_layer=1, n_head=4, bos_token_id=0, eos_token_id=0), 26,
         [T.Q8_0, T.F16])


def i2_s(trits, scale):
    """bitnet.cpp's tensor of -1, 0 and 1: byte i of a block of 128 has elements i, 32 + i, 64 + i and 96 + i, the first
    in its upper bits; after all blocks the scale, in 32 bytes."""
    quarters = (trits.reshape(-1, 4, 32) + 1).astype(numpy.uint8)
    packed = quarters[:, 0] << 6 | quarters[:, 1] << 4 | quarters[:, 2] << 2 | quarters[:, 3]
    tail = numpy.array([scale] + 7 * [0], "<f4")
    return numpy.concatenate([packed.reshape(-1), tail.view(numpy.uint8)])


def make_bitnet():
    """As microsoft/BitNet writes them: matrices of layers are I2_S, type 36, which the package does not know."""
    config = BitNetConfig(vocab_size=61, hidden_size=128, intermediate_size=256, num_hidden_layers=2,
                          num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=64, rms_norm_eps=1e-5,
                          tie_word_embeddings=True, hidden_act="relu2", rope_parameters=rope("default", 500000.0))
    config._attn_implementation = "eager"
    config.head_dim = config.hidden_size // config.num_attention_heads
    model = BitNetForCausalLM(config).eval()
    randomize(model, 34)
    writer = gguf.GGUFWriter(FOLDER / "bitnet_i2_s.gguf", "bitnet-b1.58")
    add_settings(writer, config, "bitnet-b1.58")
    generator = numpy.random.default_rng(35)
    for parameter, values in model.named_parameters():
        stored, rows = name_of(parameter, BITNET_NAMES), values.detach().numpy()
        if rows.ndim == 2 and "blk." in stored:
            trits = generator.integers(-1, 2, rows.shape)
            scale = numpy.float32(torch.tensor(generator.uniform(0.02, 0.2)).bfloat16().item())
            writer.add_tensor(stored, i2_s(trits, scale).view(numpy.int8), raw_shape=rows.shape, raw_dtype=36)
            rows = trits * scale
        else:
            data = gguf.quantize(rows, T.F16 if rows.ndim == 2 else T.F32)
            writer.add_tensor(stored, data)
            rows = data.astype(numpy.float32)
        values.data = torch.tensor(rows.astype(numpy.float32))
    finish(writer)
    tokens = torch.tensor([[(7 * i + 3) % config.vocab_size for i in range(N_TOKENS)]])
    with torch.no_grad():
        logits = model.double()(tokens, use_cache=False).logits[0]
    numpy.save(FOLDER / "bitnet_i2_s_logits.npy", logits.float().numpy())


def add_word_piece(writer, vocabulary):
    """A word's first token has "▁" before it, the others lack their "##"; one unused token pads the embedding."""
    special = [token for token in vocabulary if len(token) > 1 and token[0] == "[" and token[-1] == "]"]
    padding = [f"[PAD{len(vocabulary)}]"]

    def stored(token):
        if token in special:
            return token
        return token[2:] if token.startswith("##") else "\u2581" + token
    writer.add_tokenizer_model("bert")
    writer.add_token_list([stored(token) for token in vocabulary] + padding)
    writer.add_token_types([KINDS["control" if token in special else "normal"] for token in vocabulary]
                           + [KINDS["unused"]])
    for name, token in dict(bos="[CLS]", sep="[SEP]", unk="[UNK]", pad="[PAD]", mask="[MASK]").items():
        getattr(writer, f"add_{name}_token_id")(vocabulary.index(token))


def make_bert(name, config, seed, types, pooling, edit, fused=False):
    """`types`: of the matrices in turn, tables of positions and token types aside."""
    config._attn_implementation = "eager"
    model = BertModel(config, add_pooling_layer=False).eval()
    make_encoders.randomize(model, seed)
    writer = gguf.GGUFWriter(FOLDER / f"{name}.gguf", "bert")
    writer.add_name("random")
    writer.add_block_count(config.num_hidden_layers)
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_layer_norm_eps(config.layer_norm_eps)
    writer.add_causal_attention(False)
    writer.add_pooling_type(pooling)
    writer.add_token_type_count(config.type_vocab_size)
    n_matrices, parts = 0, []
    for parameter, values in model.named_parameters():
        stored = name_of(parameter, BERT_NAMES)
        type_ = T.F32
        if values.dim() == 2 and not stored.startswith(("position_embd", "token_types")):
            type_ = types[n_matrices % len(types)]
            n_matrices += 1
        data = gguf.quantize(values.detach().numpy(), type_)
        values.data = torch.tensor(gguf.dequantize(data, type_).reshape(values.shape).copy())
        if fused and any(part in stored for part in (".attn_q.", ".attn_k.", ".attn_v.")):
            parts.append((stored, data, type_))
        else:
            writer.add_tensor(stored, data, raw_dtype=type_)
    for stored, data, type_ in parts:  # in the order of query, key, value
        if ".attn_q." in stored:
            same = [part for other, part, _ in parts if other in [stored.replace("_q.", f"_{x}.") for x in "qkv"]]
            writer.add_tensor(stored.replace("attn_q", "attn_qkv"), numpy.concatenate(same), raw_dtype=type_)
    edit(writer)
    finish(writer)
    model = model.double()

    def rows(ids):
        with torch.no_grad():
            return model(torch.tensor([ids])).last_hidden_state[0]
    numpy.save(FOLDER / f"{name}_rows.npy", rows([(7 * i + 3) % config.vocab_size for i in range(N_TOKENS)]).float())
    return rows


def make_berts():
    vocabulary = make_encoders.VOCABULARY
    size = dict(num_hidden_layers=2, max_position_embeddings=40)
    rows = make_bert("bert", BertConfig(vocab_size=len(vocabulary) + 1, hidden_size=36, num_attention_heads=3,
                                        intermediate_size=52, **size),
                     28, [T.F16, T.F16, T.BF16, T.F16, T.F32], gguf.PoolingType.MEAN,
                     lambda writer: add_word_piece(writer, vocabulary))
    tokenizer = BertTokenizer(vocab={token: i for i, token in enumerate(vocabulary)})
    means = [rows(tokenizer(text).input_ids).mean(0) for text in make_encoders.TEXTS]
    numpy.save(FOLDER / "bert_texts.npy", torch.stack([mean / mean.norm() for mean in means]).float())
    head = numpy.ones((2, 64), numpy.float32)
    make_bert("bert_qkv", BertConfig(vocab_size=61, hidden_size=64, num_attention_heads=2, intermediate_size=96,
                                     type_vocab_size=1, layer_norm_eps=1e-3, **size), 29, [T.Q8_0],
              gguf.PoolingType.CLS, lambda writer: writer.add_tensor("cls.weight", head), fused=True)


BLOCKS = [T.F32, T.F16, T.BF16, T.Q8_0, T.Q4_0, T.Q4_1, T.Q5_0, T.Q5_1, T.Q4_K, T.Q5_K, T.Q6_K,
          T.IQ4_NL, T.MXFP4, T.Q3_K, T.Q2_K, T.IQ4_XS, T.TQ1_0, T.TQ2_0]
HALVES = {T.Q4_1: (0, 2), T.Q5_1: (0, 2), T.Q4_K: (0, 2), T.Q5_K: (0, 2), T.Q6_K: (208,),
          T.MXFP4: (), T.Q3_K: (108,), T.Q2_K: (80, 82), T.TQ1_0: (52,), T.TQ2_0: (64,)}  # where blocks have float16s


def make_blocks():
    """Layer i of a tiny Llama has its query, key and value, [2, 256] each, of type BLOCKS[i] and random bytes."""
    generator = numpy.random.default_rng(27)
    n_cols = 256
    writer = gguf.GGUFWriter(FOLDER / "blocks.gguf", "llama")
    for key, value in dict(block_count=len(BLOCKS), context_length=8, embedding_length=n_cols, feed_forward_length=1,
                           head_count=1).items():
        getattr(writer, f"add_{key}")(value)
    writer.add_key_length(2)
    writer.add_value_length(2)
    writer.add_layer_norm_rms_eps(1e-5)

    def plain(name, *shape):
        writer.add_tensor(name + ".weight", generator.standard_normal(shape).astype(numpy.float16))

    plain("token_embd", 2, n_cols)
    plain("output_norm", n_cols)
    expected = []
    for i, type_ in enumerate(BLOCKS):
        for part in ("attn_q", "attn_k", "attn_v"):
            n_elements, n_bytes = gguf.GGML_QUANT_SIZES[type_]
            if n_elements == 1:
                data = gguf.quantize(generator.standard_normal((2, n_cols)).astype(numpy.float32), type_)
            else:
                data = generator.integers(0, 256, (2 * n_cols // n_elements, n_bytes), dtype=numpy.uint8)
                for at in HALVES.get(type_, (0,)):  # finite factors of all sizes and signs
                    factors = generator.standard_normal(len(data)) * 2.0 ** generator.integers(-16, 8, len(data))
                    data[:, at:at + 2] = factors.astype(numpy.float16)[:, None].view(numpy.uint8)
                data = data.reshape(2, -1)
            writer.add_tensor(f"blk.{i}.{part}.weight", data, raw_dtype=type_)
            expected.append(gguf.dequantize(data, type_).reshape(2, n_cols))
        for part, shape in dict(attn_norm=(n_cols,), ffn_norm=(n_cols,), attn_output=(n_cols, 2), ffn_gate=(1, n_cols),
                                ffn_up=(1, n_cols), ffn_down=(n_cols, 1)).items():
            plain(f"blk.{i}.{part}", *shape)
    finish(writer)
    numpy.save(FOLDER / "blocks.npy", numpy.concatenate(expected).astype(numpy.float32))


def write_vocabulary(name, model, pre, tokens, kinds, more):
    writer = gguf.GGUFWriter(FOLDER / f"tokenizer_{name}.gguf", "llama")
    writer.add_tokenizer_model(model)
    if pre:
        writer.add_tokenizer_pre(pre)
    writer.add_token_list(tokens)
    writer.add_token_types(kinds)
    more(writer)
    finish(writer)


def byte_level(name, pre, bos=None):
    parts = json.loads((HERE / f"tokenizer_{name}.json").read_text())
    ids = dict(parts["model"]["vocab"])
    added = {token["content"]: "control" if token["special"] else "user" for token in parts["added_tokens"]}
    ids.update({token["content"]: token["id"] for token in parts["added_tokens"]})
    tokens = sorted(ids, key=ids.get)
    assert [ids[token] for token in tokens] == list(range(len(tokens)))

    def more(writer):
        writer.add_token_merges([" ".join(merge) for merge in parts["model"]["merges"]])
        writer.add_eos_token_id(ids["<|end|>"])
        if bos:
            writer.add_bos_token_id(ids[bos])
    write_vocabulary(name, "gpt2", pre, tokens, [KINDS[added.get(token, "normal")] for token in tokens], more)


def sentence_pieces():
    trained = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(SENTENCES * 4), model_writer=trained, model_type="bpe", vocab_size=700,
        byte_fallback=True, character_coverage=0.98, normalization_rule_name="identity",
        remove_extra_whitespaces=False, num_threads=1, minloglevel=2)
    model = sentencepiece.SentencePieceProcessor(model_proto=trained.getvalue())
    n = model.get_piece_size()

    def kind(i):
        if model.is_byte(i):
            return "byte"
        return "unknown" if model.is_unknown(i) else "control" if model.is_control(i) else "normal"

    def more(writer):
        writer.add_token_scores([model.get_score(i) for i in range(n)])
        writer.add_bos_token_id(model.bos_id())
        writer.add_eos_token_id(model.eos_id())
        writer.add_unk_token_id(model.unk_id())
    write_vocabulary("pieces", "llama", None, [model.id_to_piece(i) for i in range(n)],
                     [KINDS[kind(i)] for i in range(n)], more)
    write_crcs("pieces", model.encode)


def write_crcs(name, encode):
    texts = json.loads((HERE / "tokenizer_texts.json").read_text())["mixed"]
    crcs = [zlib.crc32(numpy.array(encode(text), dtype="<u4").tobytes()) for text in texts]
    (FOLDER / f"tokenizer_{name}_crc.json").write_text(json.dumps(crcs, separators=(",", ":")) + "\n")


def word_pieces():
    """tokenizer_bert.json without the added tokens that GGUF has no way to describe."""
    parts = json.loads((HERE / "tokenizer_bert.json").read_text())
    parts["added_tokens"] = [token for token in parts["added_tokens"] if token["special"]]
    ids = parts["model"]["vocab"]
    writer = gguf.GGUFWriter(FOLDER / "tokenizer_bert.gguf", "bert")
    add_word_piece(writer, sorted(ids, key=ids.get))
    finish(writer)
    tokenizer = Tokenizer.from_str(json.dumps(parts))
    write_crcs("bert", lambda text: tokenizer.encode(text).ids)


def main():
    FOLDER.mkdir(exist_ok=True)
    make_models()
    make_bitnet()
    make_berts()
    make_blocks()
    byte_level("gpt2", "gpt-2")
    byte_level("smollm", "smollm")
    byte_level("qwen2", "qwen2")
    byte_level("llama3", "llama-bpe", bos="<s>")
    sentence_pieces()
    word_pieces()


if __name__ == "__main__":
    main()
