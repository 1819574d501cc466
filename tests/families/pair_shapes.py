"""Small random models that write one text from another, of every family that convert reads, and their results.

Needs torch and transformers. SHAPES[model_type] lists (configuration, generation settings), the first the smallest.
Random models like to repeat one token, which would hide a mistake, so some settings forbid that.
"""
import json
import pathlib
import shutil

import torch
from transformers import AutoConfig, AutoModelForSeq2SeqLM, GenerationConfig

N_SOURCE, N_TARGET = 21, 11


def sizes(d_model=24, layers=(2, 2), heads=(4, 4), d_ff=(28, 30), vocab=41, positions=40, **more):
    return dict(d_model=d_model, encoder_layers=layers[0], decoder_layers=layers[1], encoder_attention_heads=heads[0],
                decoder_attention_heads=heads[1], encoder_ffn_dim=d_ff[0], decoder_ffn_dim=d_ff[1], vocab_size=vocab,
                max_position_embeddings=positions, **more)


SMALL = dict(d_model=12, layers=(1, 2), heads=(2, 3), d_ff=(14, 10), vocab=29, positions=32)
WIDE = dict(d_model=40, layers=(3, 2), heads=(5, 8), d_ff=(33, 70))
ROLES = dict(bos_token_id=0, pad_token_id=1, eos_token_id=2, decoder_start_token_id=2)
MARIAN = dict(eos_token_id=0, bos_token_id=0, pad_token_id=28, decoder_start_token_id=28, forced_eos_token_id=0)
PEGASUS = dict(pad_token_id=0, eos_token_id=1, decoder_start_token_id=0)



def t5(d_model, d_kv, heads, d_ff, layers, vocab=41, **more):
    return dict(d_model=d_model, d_kv=d_kv, num_heads=heads, d_ff=d_ff, num_layers=layers[0], num_decoder_layers=layers[1],
                vocab_size=vocab, pad_token_id=0, eos_token_id=1, decoder_start_token_id=0, n_positions=40, **more)


T5_SMALL = dict(d_model=12, d_kv=4, heads=2, d_ff=14, layers=(2, 1), vocab=29, relative_attention_num_buckets=8,
                relative_attention_max_distance=9)
T5_WIDE = dict(d_model=40, d_kv=9, heads=5, d_ff=33, layers=(3, 2))

SHAPES = {
    "t5": [
        (t5(**T5_SMALL), dict(no_repeat_ngram_size=2, max_length=25)),
        (t5(**T5_WIDE, feed_forward_proj="gated-gelu", tie_word_embeddings=False),
         dict(no_repeat_ngram_size=2, max_length=30)),
        (t5(**T5_WIDE, feed_forward_proj="gated-silu"), dict(no_repeat_ngram_size=1, max_length=20)),
    ],
    "mt5": [
        (t5(**T5_SMALL), dict(no_repeat_ngram_size=2, max_length=25)),
        (t5(**T5_WIDE, feed_forward_proj="relu"), dict(no_repeat_ngram_size=2, max_length=30)),
    ],
    "marian": [
        (sizes(**SMALL, **MARIAN, activation_function="swish", scale_embedding=True),
         dict(bad_words_ids=[[28], [0], [3, 5]], no_repeat_ngram_size=2, max_length=20)),
        (sizes(d_model=30, heads=(3, 5), layers=(3, 1), activation_function="relu", **MARIAN),
         dict(no_repeat_ngram_size=1, max_length=12)),
        (sizes(**WIDE, activation_function="gelu", scale_embedding=True, tie_word_embeddings=True, **MARIAN),
         dict(suppress_tokens=[4, 9], begin_suppress_tokens=[7], min_new_tokens=5,
              no_repeat_ngram_size=2, max_length=30)),
    ],
    "bart": [
        (sizes(**SMALL, **ROLES),
         dict(forced_bos_token_id=0, forced_eos_token_id=2, min_length=9, no_repeat_ngram_size=3, max_length=24)),
        (sizes(d_model=30, heads=(3, 5), scale_embedding=True, activation_function="relu", **ROLES),
         dict(no_repeat_ngram_size=1, max_length=30)),
        (sizes(**WIDE, **ROLES), dict(no_repeat_ngram_size=2, encoder_no_repeat_ngram_size=1, max_new_tokens=17)),
    ],
    "mbart": [
        (sizes(**SMALL, **ROLES, scale_embedding=True),
         dict(forced_bos_token_id=9, forced_eos_token_id=2, max_length=16)),
        (sizes(**WIDE, **(ROLES | dict(decoder_start_token_id=40))), dict(max_length=16)),
    ],
    "m2m_100": [
        (sizes(**SMALL, **ROLES), dict(forced_bos_token_id=17, no_repeat_ngram_size=2, max_length=20)),
        (sizes(**WIDE, **ROLES, scale_embedding=False, activation_function="gelu"), dict(no_repeat_ngram_size=2)),
    ],
    "pegasus": [
        (sizes(**SMALL, **PEGASUS, scale_embedding=True, activation_function="relu"),
         dict(forced_eos_token_id=1, max_length=15, min_length=5, no_repeat_ngram_size=2)),
        (sizes(**WIDE, **PEGASUS), dict(no_repeat_ngram_size=2)),
    ],
    "blenderbot": [
        (sizes(**SMALL, **(ROLES | dict(decoder_start_token_id=0))),
         dict(encoder_no_repeat_ngram_size=2, no_repeat_ngram_size=2, min_length=7, max_length=18)),
        (sizes(**WIDE, **ROLES, scale_embedding=True), {}),
    ],
    "plbart": [
        (sizes(**SMALL, **(ROLES | dict(decoder_start_token_id=27))),
         dict(forced_eos_token_id=2, no_repeat_ngram_size=2, max_length=20)),
        (sizes(**WIDE, **ROLES, scale_embedding=False), {}),
    ],
}


def randomize(model, seed):
    """Weights large enough that attention is far from uniform and every bias and norm matters."""
    generator = torch.Generator().manual_seed(seed)
    for name, parameter in model.named_parameters():
        noise = torch.randn(parameter.shape, generator=generator)
        if "embed_positions" in name:
            parameter.data = parameter.data if is_computed(model.config) else noise * 0.9
        elif "layer_norm" in name or "layernorm" in name:
            parameter.data = noise * 0.2 + (0.0 if name.endswith("bias") else 1.0)
        elif "shared" in name or "embed_tokens" in name:
            # So small that tokens follow from positions and the source more than from the token before.
            parameter.data = noise * (0.08 if getattr(model.config, "scale_embedding", False) else 0.3)
        elif "relative_attention_bias" in name:
            parameter.data = noise * 0.9
        elif ".q." in name:  # of T5, whose scores are not divided
            parameter.data = noise * (1.4 / (parameter.shape[1] * model.config.d_kv)**0.5)
        elif parameter.dim() > 1:
            parameter.data = noise * (1.4 / parameter.shape[1]**0.5)
        else:
            parameter.data = noise * 0.3
    if hasattr(model, "final_logits_bias"):
        model.final_logits_bias = 0.1 * torch.randn(model.final_logits_bias.shape, generator=generator)
    model.tie_weights()


def is_computed(config):
    return config.model_type in ("marian", "pegasus", "m2m_100")


def in_double(model):
    """The model in float64, its computed positions not rounded to what it was saved in."""
    model = model.double()
    for side in (model.get_encoder(), model.get_decoder()):
        positions = getattr(side, "embed_positions", None)
        if hasattr(positions, "create_weight"):
            positions.weight.data = positions.create_weight()
        if hasattr(positions, "make_weights"):
            size = positions.weights.shape
            positions.weights = positions.get_embedding(size[0], size[1], positions.padding_idx).double()
    return model


def source_ids(config):
    roles = {config.pad_token_id, config.eos_token_id}
    ids = [(7 * i + 3) % config.vocab_size for i in range(3 * N_SOURCE)]
    return [i for i in ids if i not in roles][:N_SOURCE - 1] + [config.eos_token_id]


def write_model(model_type, shape, folder, seed, dtype=torch.float32):
    """Writes a folder; returns (source ids, target ids, float32 logits of the target, what generate writes of the source)."""
    fields, settings = shape
    shutil.rmtree(folder, ignore_errors=True)
    config = AutoConfig.for_model(model_type, **fields)
    config._attn_implementation = "eager"
    model = AutoModelForSeq2SeqLM.from_config(config).eval()
    randomize(model, seed)
    roles = {name: value for name, value in fields.items() if name.endswith("token_id")}
    model.generation_config = GenerationConfig(**(roles | settings), num_beams=4, early_stopping=True,
                                               length_penalty=0.9)
    model.to(dtype).save_pretrained(folder)
    model = in_double(model)
    source = source_ids(config)
    target = [config.decoder_start_token_id] + [(5 * i + 4) % config.vocab_size for i in range(1, N_TARGET)]
    with torch.no_grad():
        logits = model(input_ids=torch.tensor([source]), decoder_input_ids=torch.tensor([target])).logits[0].float()
        limits = {} if "max_length" in settings or "max_new_tokens" in settings else {
            "max_length": getattr(config, "max_position_embeddings", 40)}
        written = model.generate(torch.tensor([source]), num_beams=1, do_sample=False, early_stopping=False, **limits)
    return source, target, logits.numpy(), written[0].tolist()


def text_of(ids, generation):
    """What of generate's ids is text: not the start, nor what must follow it, nor the end, which may be forced."""
    n_start = 2 if generation.get("forced_bos_token_id") is not None else 1
    if len(ids) == generation.get("max_length") and ids[-1] == generation.get("forced_eos_token_id"):
        ids = ids[:-1]
    ends = generation.get("eos_token_id")
    return [i for i in ids[n_start:] if i not in (ends if isinstance(ends, list) else [ends])]


def read_json(path):
    return json.loads(pathlib.Path(path).read_text())
