#!/usr/bin/env python3
"""Classifiers as GGUF files, as llama.cpp's converter writes rerankers: tests/golden/rerankers/NAME/model.gguf.

The weights, the vocabulary and the texts are those of a folder of encoders/; expected_I.npy, the logits of each text, are
transformers', of BERT with the exact GELU that GGUF implies. no_key.gguf is the same without its pooling_type, as older files
are. Needs gguf, numpy, safetensors, torch and transformers.
"""
import json
import pathlib

import gguf
import numpy
import torch
from safetensors.numpy import load_file
from transformers import AutoModelForSequenceClassification

HERE = pathlib.Path(__file__).resolve().parent
FOLDER = HERE / "rerankers"
BERT = {"bert.pooler.dense": "cls", "classifier": "cls.output"}
QWEN = {"score": "cls.output"}


def add_tokenizer(writer, folder):
    words = (folder / "vocab.txt").read_text().split("\n")[:-1]
    special = {word: words.index(word) for word in ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")}
    pieces = [word if word in special else word[2:] if word.startswith("##") else "\u2581" + word for word in words]
    writer.add_tokenizer_model("bert")
    writer.add_tokenizer_pre("default")
    writer.add_token_list(pieces)
    writer.add_token_types([3 if word in special else 1 for word in words])
    writer.add_token_type_count(2)
    for name, add in (("[PAD]", writer.add_pad_token_id), ("[UNK]", writer.add_unk_token_id),
                      ("[CLS]", writer.add_bos_token_id), ("[SEP]", writer.add_eos_token_id),
                      ("[SEP]", writer.add_sep_token_id), ("[MASK]", writer.add_mask_token_id)):
        add(special[name])


def write(path, name, architecture, own, with_pooling=True, labels=None):
    folder = HERE / "encoders" / name
    config = json.loads((folder / "config.json").read_text())
    writer = gguf.GGUFWriter(path, architecture)
    writer.add_embedding_length(config["hidden_size"])
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_head_count(config["num_attention_heads"])
    writer.add_feed_forward_length(config["intermediate_size"])
    if architecture == "bert":
        writer.add_layer_norm_eps(config["layer_norm_eps"])
        writer.add_causal_attention(False)
    else:
        writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
        writer.add_head_count_kv(config["num_key_value_heads"])
        writer.add_key_length(config["head_dim"])
        writer.add_value_length(config["head_dim"])
        writer.add_rope_freq_base(config["rope_parameters"]["rope_theta"])
    if with_pooling:
        writer.add_pooling_type(gguf.PoolingType.RANK)
    if labels:
        writer.add_classifier_output_labels(labels)
    add_tokenizer(writer, folder)
    kind = next(a for a, known in gguf.MODEL_ARCH_NAMES.items() if known == architecture)
    names = gguf.get_tensor_name_map(kind, config["num_hidden_layers"])
    for tensor, weight in load_file(folder / "model.safetensors").items():
        stem, end = tensor.rsplit(".", 1)
        known = f"{own[stem]}.{end}" if stem in own else names.get_name(tensor.removeprefix("bert."), try_suffixes=(".weight", ".bias"))
        writer.add_tensor(known, numpy.ascontiguousarray(weight.astype(numpy.float32)))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def compute(name, to, **fields):
    """Writes the texts and what transformers makes of them, with those fields of the configuration."""
    folder = HERE / "encoders" / name
    model = AutoModelForSequenceClassification.from_pretrained(folder, dtype=torch.float32, **fields).eval()
    words = (folder / "vocab.txt").read_text().split("\n")
    lines = (folder / "texts.jsonl").read_text()
    (to / "texts.jsonl").write_text(lines)
    for number, line in enumerate(lines.splitlines()):
        text = json.loads(line)
        parts = [["[CLS]", *text["text"].split(), "[SEP]"], [*text["pair"].split(), "[SEP]"] if "pair" in text else []]
        ids = torch.tensor([[words.index(word) for part in parts for word in part]])
        types = {"token_type_ids": torch.tensor([[0] * len(parts[0]) + [1] * len(parts[1])])} if "bert" in name else {}
        with torch.no_grad():
            logits = model(ids, **types).logits[0].numpy()
        numpy.save(to / f"expected_{number}.npy", logits)


for kind in ("bert", "qwen3"):
    (FOLDER / kind).mkdir(parents=True, exist_ok=True)
write(FOLDER / "bert/model.gguf", "bert_sequenceclassification", "bert", BERT)
write(FOLDER / "bert/no_key.gguf", "bert_sequenceclassification", "bert", BERT, with_pooling=False)
write(FOLDER / "qwen3/model.gguf", "qwen3_sequenceclassification", "qwen3", QWEN, labels=["yes", "no", "maybe"])
compute("bert_sequenceclassification", FOLDER / "bert", hidden_act="gelu")
compute("qwen3_sequenceclassification", FOLDER / "qwen3")
