#!/usr/bin/env python3
"""A reranker in the form of Qwen3-Reranker: tests/golden/rerankers/causal, causal_classes and causal_gguf.

The first is a causal model in the layout of sentence-transformers (LogitScore, a chat template for query and document), the
second the same as a class with one label, the third a GGUF file as llama.cpp's converter writes it. expected.json has the pairs,
their logits as the model card computes them, and the scores of sentence-transformers, with which these agree.
Needs gguf, numpy, sentence-transformers, tokenizers, torch and transformers.
"""
import json
import pathlib
import shutil

import gguf
import numpy
import torch
from safetensors.numpy import load_file
from sentence_transformers import CrossEncoder
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM, Qwen3ForSequenceClassification

HERE = pathlib.Path(__file__).resolve().parent
FOLDER = HERE / "rerankers"
MOST = 150
TASK = "Given a web search query, retrieve relevant passages that answer the query"
SYSTEM = ("Judge whether the Document meets the requirements based on the Query and the Instruct provided. Note that the "
          'answer can only be "yes" or "no".')
PREFIX = f"<|im_start|>system\n{SYSTEM}<|im_end|>\n<|im_start|>user\n"
SUFFIX = "<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n"
CHAT = ("<|im_start|>system\n" + SYSTEM + "<|im_end|>\n<|im_start|>user\n<Instruct>: "
        "{{ messages | selectattr('role', 'eq', 'system') | map(attribute='content') | first | default('" + TASK + "') }}\n"
        "<Query>: {{ messages | selectattr('role', 'eq', 'query') | map(attribute='content') | first }}\n"
        "<Document>: {{ messages | selectattr('role', 'eq', 'document') | map(attribute='content') | first }}<|im_end|>\n"
        "{%- if add_generation_prompt %}\n{{- '\\n<|im_start|>assistant\\n<think>\\n\\n</think>\\n\\n' }}\n{%- endif %}")
PAIRS = [
    ("what is the capital of China?", "The capital of China is Beijing."),
    ("what is the capital of China?", "Gravity pulls two bodies towards each other."),
    ("explain gravity", " It pulls.\n\nÜber 12 Körper, «ja» 你好!"),
    ("", "yes"),
    ("no", ""),
    ("why does it rain?", "Warm air rises, cools and lets its water go. " * 12),  # is cut
]
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
MARKS = ["<think>", "</think>"]
WORDS = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")


def make_tokenizer():
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Split(Regex(WORDS), "isolated"), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    tokenizer.decoder = decoders.ByteLevel()
    texts = [SYSTEM, f"<Instruct>: {TASK}\n<Query>: <Document>: system\nuser\nassistant\n", "yes\nno\nyes no"] * 8
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    trainer = trainers.BpeTrainer(vocab_size=440, initial_alphabet=alphabet, show_progress=False)
    tokenizer.train_from_iterator(texts + [text for pair in PAIRS for text in pair], trainer)
    tokenizer.add_special_tokens(SPECIAL)
    tokenizer.add_tokens([AddedToken(mark, normalized=False) for mark in MARKS])
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token="<|endoftext|>", eos_token="<|im_end|>",
                                   model_max_length=MOST, padding_side="left", chat_template=CHAT)


def make_model(n_tokens):
    torch.manual_seed(7)
    model = Qwen3ForCausalLM(Qwen3Config(
        vocab_size=n_tokens, hidden_size=12, intermediate_size=20, num_hidden_layers=2, num_attention_heads=2,
        num_key_value_heads=1, head_dim=8, max_position_embeddings=200, tie_word_embeddings=True, rope_theta=10000.0,
        pad_token_id=None, bos_token_id=None, eos_token_id=None)).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(torch.randn(parameter.shape) * 0.1 + 1 if parameter.dim() == 1 else
                            torch.randn(parameter.shape) * (1.0 if "embed" in name else 1.5 / parameter.shape[1] ** 0.5))
    return model


def ids_of(tokenizer, query, document):
    """As the model card has it: what is between prefix and suffix is cut."""
    def ids(text):
        return tokenizer(text, add_special_tokens=False).input_ids
    prefix, suffix = ids(PREFIX), ids(SUFFIX)
    middle = ids(f"<Instruct>: {TASK}\n<Query>: {query}\n<Document>: {document}")
    return prefix + middle[:MOST - len(prefix) - len(suffix)] + suffix


def write_json(path, value):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, indent=1) + "\n")


def save_modules(folder, has_score, yes, no):
    base = "sentence_transformers.base.modules.transformer.Transformer"
    score = "sentence_transformers.cross_encoder.modules.logit_score.LogitScore"
    kinds = [("", base), ("1_LogitScore", score)][:2 if has_score else 1]
    write_json(folder / "modules.json", [{"idx": i, "name": str(i), "path": path, "type": kind}
                                         for i, (path, kind) in enumerate(kinds)])
    if has_score:
        write_json(folder / "1_LogitScore" / "config.json", {"true_token_id": yes, "false_token_id": no})
    write_json(folder / "config_sentence_transformers.json",
               {"model_type": "CrossEncoder", "prompts": {}, "default_prompt_name": None,
                "activation_fn": "torch.nn.modules.activation.Sigmoid"})
    way = {"method": "forward", "method_output_name": "logits"}
    write_json(folder / "sentence_bert_config.json", {
        "transformer_task": "text-generation" if has_score else "sequence-classification",
        "modality_config": {"text": way, "message": {**way, "format": "flat"}},
        "module_output_name": "causal_logits" if has_score else "scores",
        "processing_kwargs": {"chat_template": {"add_generation_prompt": True}}})


def save_classes(folder, model, yes, no):
    config = Qwen3Config(**{**model.config.to_dict(), "id2label": {0: "LABEL_0"}, "label2id": {"LABEL_0": 0}})
    classes = Qwen3ForSequenceClassification(config).eval()
    classes.model.load_state_dict(model.model.state_dict())
    with torch.no_grad():
        classes.score.weight.copy_((model.lm_head.weight[yes] - model.lm_head.weight[no])[None])
    classes.save_pretrained(folder)


def write_gguf(path, folder, model, tokenizer, yes, no):
    config = model.config
    writer = gguf.GGUFWriter(path, "qwen3")
    writer.add_embedding_length(config.hidden_size)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_context_length(MOST)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_key_length(config.head_dim)
    writer.add_value_length(config.head_dim)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_rope_freq_base(10000.0)
    writer.add_pooling_type(gguf.PoolingType.RANK)
    writer.add_classifier_output_labels(["yes", "no"])
    form = f"<Instruct>: {TASK}\n<Query>: {{query}}\n<Document>: {{document}}"
    writer.add_chat_template([{"name": "rerank", "template": PREFIX + form + SUFFIX}])
    data = json.loads((folder / "tokenizer.json").read_text())
    pieces = tokenizer.convert_ids_to_tokens(range(config.vocab_size))
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("qwen2")
    writer.add_token_list(pieces)
    writer.add_token_types([3 if piece in SPECIAL else 4 if piece in MARKS else 1 for piece in pieces])
    writer.add_token_merges([" ".join(pair) for pair in data["model"]["merges"]])
    writer.add_eos_token_id(pieces.index("<|im_end|>"))
    writer.add_pad_token_id(pieces.index("<|endoftext|>"))
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.QWEN3, config.num_hidden_layers)
    for tensor, weight in load_file(folder / "model.safetensors").items():
        writer.add_tensor(names.get_name(tensor, try_suffixes=(".weight",)), weight)
    table = model.lm_head.weight.detach().numpy()
    writer.add_tensor("cls.output.weight", numpy.stack([table[yes], table[no]]))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def main():
    for name in ("causal", "causal_classes", "causal_gguf"):
        shutil.rmtree(FOLDER / name, ignore_errors=True)
    tokenizer = make_tokenizer()
    model = make_model(len(tokenizer))
    yes, no = (tokenizer(word, add_special_tokens=False).input_ids for word in ("yes", "no"))
    assert len(yes) == len(no) == 1
    causal, classes = FOLDER / "causal", FOLDER / "causal_classes"
    model.save_pretrained(causal)
    (causal / "generation_config.json").unlink(missing_ok=True)
    save_classes(classes, model, yes[0], no[0])
    for folder, has_score in ((causal, True), (classes, False)):
        tokenizer.save_pretrained(folder)
        save_modules(folder, has_score, yes[0], no[0])
    (FOLDER / "causal_gguf").mkdir()
    write_gguf(FOLDER / "causal_gguf" / "model.gguf", causal, model, tokenizer, yes[0], no[0])
    cases = []
    for query, document in PAIRS:
        ids = ids_of(tokenizer, query, document)
        with torch.no_grad():
            last = model(torch.tensor([ids])).logits[0, -1].double()
        cases.append({"query": query, "document": document, "ids": ids, "logit": (last[yes[0]] - last[no[0]]).item()})
    logits = numpy.array([case["logit"] for case in cases])
    for folder in (causal, classes):
        scores = CrossEncoder(str(folder), device="cpu").predict(PAIRS, batch_size=1)
        assert abs(scores - 1 / (1 + numpy.exp(-logits))).max() < 1e-5, (scores, logits)
    write_json(FOLDER / "causal" / "expected.json", cases)


main()
