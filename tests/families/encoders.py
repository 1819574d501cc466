#!/usr/bin/env python3
"""Encoders of every family that convert/families reads, with their heads, against transformers and sentence-transformers.

    encoders.py --sweep FOVEA [--shapes N] [--only NAME]   random shapes, to be computed by that command line
    encoders.py --sweep FOVEA --folder MODEL               a folder of sentence-transformers over 1,000 texts
    encoders.py --golden FOLDER [--only NAME]              tests/golden/encoders/FAMILY_HEAD, with what is expected;
                                                           beside it encoders_gguf/FAMILY with a GGUF file of the same

Needs torch, transformers 5 and, for pooling, sentence-transformers. Random models are those of
encoder_shapes.py. Results must lie within 1e-4 of the largest value that is expected.
"""
import argparse
import json
import math
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile

try:
    import numpy
    import torch
    import transformers as T
    from safetensors.torch import save_file
except ImportError as missing:
    print(f"{missing}: nothing was compared")
    sys.exit(77)

from encoder_shapes import CLS, FAMILIES, LETTERS, SEP, VOCABULARY  # noqa: E402

BOUND = 1e-4


def save(model, folder):
    folder.mkdir(parents=True, exist_ok=True)
    model.save_pretrained(folder)
    (folder / "vocab.txt").write_text("\n".join(VOCABULARY) + "\n")
    (folder / "tokenizer_config.json").write_text('{"do_lower_case": true}\n')
    (folder / "generation_config.json").unlink(missing_ok=True)


def texts_of(rng, n, most=60):
    """Texts and pairs of letters: [{"text": …, "pair": …}]."""
    texts = []
    for i in range(n):
        letters = lambda: " ".join(rng.choice(LETTERS) for _ in range(rng.randint(1, most // 2)))
        texts.append({"text": letters()} | ({"pair": letters()} if i % 3 == 2 else {}))
    return texts


def ids_of(text, n_types):
    """What the template makes of it, and the types."""
    letters = lambda t: [VOCABULARY.index(a) for a in t.split()]
    ids = [CLS, *letters(text["text"]), SEP]
    types = [0] * len(ids)
    if "pair" in text:
        second = [*letters(text["pair"]), SEP]
        ids, types = ids + second, types + [1] * len(second)
    return ids, types if n_types > 1 else None


def expected(model, texts):
    """Each text's result, as fovea encode gives it, with --head where there is one."""
    config = model.config
    n_types = 0 if isinstance(config, (T.MPNetConfig, T.ModernBertConfig)) else getattr(config, "type_vocab_size", 0)
    results = []
    for text in texts:
        ids, types = ids_of(text, n_types)
        inputs = {"input_ids": torch.tensor([ids]), "attention_mask": torch.ones(1, len(ids), dtype=torch.long)}
        if types is not None:
            inputs["token_type_ids"] = torch.tensor([types])
        with torch.no_grad():
            out = model(**inputs)
        if hasattr(out, "start_logits"):
            rows = torch.stack([out.start_logits[0], out.end_logits[0]], dim=1)
        elif hasattr(out, "logits"):
            rows = out.logits[0]
        else:
            rows = out.last_hidden_state[0]
        results.append(rows.numpy())
    return results


def run(fovea, *arguments):
    done = subprocess.run([fovea, *map(str, arguments)], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"fovea {' '.join(map(str, arguments))}: {done.stderr}")
    return done


def computed(fovea, file, text, scratch, has_head):
    """Of one text, through a line of JSON."""
    line, out = scratch / "text.jsonl", scratch / "out.npy"
    line.write_text(json.dumps(text) + "\n")
    run(fovea, "encode", file, "--texts", line, *["--head"] * has_head, "-o", out)
    return numpy.load(out)[0]


def difference(want, got):
    if want.shape != got.shape:
        return math.inf
    return float(numpy.abs(want - got).max() / max(numpy.abs(want).max(), 1e-30))


def sweep_families(fovea, n_shapes, only):
    worst_of_all, n = 0.0, 0
    for name, family in FAMILIES.items():
        if only and name != only:
            continue
        worst = 0.0
        for head in family.heads:
            for seed in range(n_shapes):
                with tempfile.TemporaryDirectory() as scratch:
                    scratch = pathlib.Path(scratch)
                    model = family.model(head, seed)
                    save(model, scratch / "model")
                    run(fovea, "convert", scratch / "model", "-o", scratch / "m.fovea")
                    texts = texts_of(random.Random(seed), 3)
                    for text, want in zip(texts, expected(model, texts)):
                        got = computed(fovea, scratch / "m.fovea", text, scratch, head not in ("Model", "Encoder"))
                        d = difference(want, got)
                        worst, n = max(worst, d), n + 1
                        if not d <= BOUND:
                            raise SystemExit(f"{name} {head} shape {seed}: expected {want.shape}, within {BOUND} of the "
                                             f"largest, got {got.shape}, {d}\n{model.config}")
        print(f"{name:12} {len(family.heads)} heads, {n_shapes} shapes each: within {worst:.1e} of the largest value")
        worst_of_all = max(worst_of_all, worst)
    return worst_of_all, n


def plain_encoder(name, seed, **more):
    """A model as its GGUF files can say: ModernBERT's have no biases, T5's no distance, Gemma's no scale of scores."""
    family = FAMILIES[name]
    draw = family.draw
    own = {"modernbert": dict(norm_bias=False, attention_bias=False, mlp_bias=False),
           "t5": dict(relative_attention_max_distance=128),
           "eurobert": dict(attention_bias=False, mlp_bias=False, head_dim=None),
           "jina_bert": dict(feed_forward_type="geglu"),
           "jina_v3": dict(hidden_act="gelu"),
           "gemma_embedding": dict(query_pre_attn_scalar=8, head_dim=8)}.get(name, {})
    family.draw = lambda rng: draw(rng) | more | own
    model = family.model("Model", seed)
    family.draw = draw
    if name == "nomic_moe":  # experts' bias is not in GGUF files
        for tensor in (p for key, p in model.named_parameters() if key.endswith("experts.bias")):
            tensor.data.zero_()
    if name == "t5" and model.config.feed_forward_proj == "gated-silu":
        return plain_encoder(name, seed, **more, feed_forward_proj="gated-gelu")
    return model


def sweep_gguf(fovea, n_shapes):
    """The same bits from a GGUF file as from the folder."""
    try:
        import gguf_encoders
    except ImportError as missing:
        print(f"{missing}: no GGUF file was compared")
        return
    for name in gguf_encoders.ENCODERS:
        for seed in range(n_shapes):
            with tempfile.TemporaryDirectory() as scratch:
                scratch = pathlib.Path(scratch)
                (scratch / "model").mkdir()
                plain_encoder(name, seed).save_pretrained(scratch / "model")
                gguf_encoders.write_encoder(scratch / "model", scratch / "model.gguf")
                ids, rows = [(7 * i + 3) % len(VOCABULARY) for i in range(50)], []
                for source in (scratch / "model", scratch / "model.gguf"):
                    run(fovea, "convert", source, "-o", scratch / "m.fovea")
                    run(fovea, "encode", scratch / "m.fovea", "--tokens", ",".join(map(str, ids)), "-o", scratch / "o.npy")
                    rows.append(numpy.load(scratch / "o.npy").tobytes())
                if rows[0] != rows[1]:
                    raise SystemExit(f"{name} shape {seed}: the GGUF file gives other bits")
        print(f"{name:12} {n_shapes} GGUF files: same bits")


def sweep_pooling(fovea, n_shapes):
    """sentence-transformers' pooling, Dense and Normalize over BERT's and T5's encoder."""
    try:
        from sentence_transformers import SentenceTransformer
        from sentence_transformers import models as modules
    except ImportError as missing:
        print(f"{missing}: no pooling was compared")
        return 0.0, 0
    worst, n = 0.0, 0
    modes = ["mean", "cls", "max", "lasttoken", "weightedmean", "mean_sqrt_len_tokens"]
    for i, mode in enumerate(modes):
        for seed in range(n_shapes):
            with tempfile.TemporaryDirectory() as scratch:
                scratch = pathlib.Path(scratch)
                name = ["bert", "mpnet", "distilbert", "gemma_embedding", "qwen3"][(i + seed) % 5]
                model = FAMILIES[name].model("Model", seed + 10 * i)
                save(model, scratch / "encoder")
                T.BertTokenizer(vocab={token: k for k, token in enumerate(VOCABULARY)}).save_pretrained(scratch / "encoder")
                parts = [modules.Transformer(str(scratch / "encoder"))]
                width = parts[0].get_word_embedding_dimension()
                parts.append(modules.Pooling(width, pooling_mode=mode))
                for k in range(seed % 3):
                    function = torch.nn.Tanh() if k == 0 else torch.nn.Identity()
                    parts.append(modules.Dense(width, 7 + k, bias=k == 0, activation_function=function))
                    width = 7 + k
                if seed % 2 == 0:
                    parts.append(modules.Normalize())
                sentence = SentenceTransformer(modules=parts, device="cpu")
                sentence.save(str(scratch / "model"))
                run(fovea, "convert", scratch / "model", "-o", scratch / "m.fovea")
                texts = [t["text"] for t in texts_of(random.Random(seed), 5)]
                want = sentence.encode(texts, batch_size=1)
                (scratch / "texts").write_text("\n".join(texts) + "\n")
                run(fovea, "encode", scratch / "m.fovea", "--texts", scratch / "texts", "-o", scratch / "out.npy")
                d = difference(want, numpy.load(scratch / "out.npy"))
                worst, n = max(worst, d), n + len(texts)
                if not d <= BOUND:
                    raise SystemExit(f"pooling {mode} over {name} {seed}: expected within {BOUND}, got {d}")
    print(f"{'pooling':12} {len(modes)} ways, {n_shapes} stacks each: within {worst:.1e} of the largest value")
    return worst, n


def compare_folder(fovea, model, n=1000):
    """Vectors of a published model over texts of all lengths, those that are cut among them."""
    from sentence_transformers import SentenceTransformer
    rng = random.Random(1)
    words = ("the of and a to in is you that it he was for on are as with his they I at be this have from or one had by "
             "word but not what all were we when your can said there use an each which she do how their if will up other "
             "café naïve Zürich 東京 привет 12,345 e-mail don't unthinkable transformers; (tokenizers) attention!").split()
    texts = [" ".join(rng.choice(words) for _ in range(rng.choice([1, 3, 8, 20, 60, 200, 400]))) for _ in range(n)]
    sentence = SentenceTransformer(str(model), device="cpu")
    want = sentence.encode(texts, batch_size=8)
    with tempfile.TemporaryDirectory() as scratch:
        scratch = pathlib.Path(scratch)
        run(fovea, "convert", model, "-o", scratch / "m.fovea")
        (scratch / "texts").write_text("\n".join(texts) + "\n")
        done = run(fovea, "encode", scratch / "m.fovea", "--texts", scratch / "texts", "-o", scratch / "out.npy")
        got = numpy.load(scratch / "out.npy")
    print(done.stderr.strip())
    d = difference(want, got)
    cosine = (want * got).sum(1) / numpy.linalg.norm(want, axis=1) / numpy.linalg.norm(got, axis=1)
    print(f"{model}: {n} texts, within {d:.1e} of the largest value, cosines from {cosine.min():.9f}")
    if not d <= BOUND:
        raise SystemExit(f"expected within {BOUND}, got {d}")


GOLDEN = [("distilbert", "SequenceClassification", 0), ("roberta", "SequenceClassification", 1),
          ("electra", "MaskedLM", 1), ("albert", "TokenClassification", 0), ("mpnet", "MaskedLM", 2),
          ("modernbert", "SequenceClassification", 2), ("nomic_bert", "Model", 0), ("t5", "Model", 1),
          ("xlm_roberta", "QuestionAnswering", 0), ("bert", "SequenceClassification", 1), ("jina_bert", "Model", 0),
          ("jina_v3", "SequenceClassification", 0), ("gemma_embedding", "Model", 0), ("mt5", "Model", 0),
          ("qwen3", "SequenceClassification", 0), ("gpt2", "TokenClassification", 0), ("llama", "Model", 0),
          ("ernie", "SequenceClassification", 0), ("data2vec_text", "MaskedLM", 0), ("rembert", "TokenClassification", 0),
          ("roformer", "MaskedLM", 1), ("megatron_bert", "SequenceClassification", 2), ("xlm_roberta_xl", "MaskedLM", 0),
          ("roberta_prelayernorm", "SequenceClassification", 0), ("bert_generation", "Encoder", 0),
          ("eurobert", "SequenceClassification", 0), ("deberta_v2", "SequenceClassification", 0),
          ("gte", "SequenceClassification", 0), ("nomic_moe", "Model", 0)]

# Golden models with sentence-transformers' modules: their widths, and what pools.
SENTENCES = {"gemma_embedding": ([12, 20, 13], "mean_tokens"), "llama": ([12], "lasttoken")}


def add_sentence_modules(folder, widths, seed, pooling="mean_tokens"):
    """Puts sentence-transformers' modules behind the folder's model: a pooling, matrices, length 1. Returns the matrices."""
    names = ["", "1_Pooling", *(f"{i}_Dense" for i in range(2, len(widths) + 1)), f"{len(widths) + 1}_Normalize"]
    kinds = ["Transformer", "Pooling", *["Dense"] * (len(widths) - 1), "Normalize"]
    (folder / "modules.json").write_text(json.dumps(
        [{"idx": i, "name": str(i), "path": name, "type": f"sentence_transformers.models.{kind}"}
         for i, (name, kind) in enumerate(zip(names, kinds))], indent=1) + "\n")
    for name in names[1:-1]:
        (folder / name).mkdir()
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(
        {"word_embedding_dimension": widths[0], "pooling_mode_cls_token": False, f"pooling_mode_{pooling}": True,
         "include_prompt": True}) + "\n")
    generator = torch.Generator().manual_seed(seed)
    matrices = []
    for name, n_cols, n_rows in zip(names[2:], widths, widths[1:]):
        (folder / name / "config.json").write_text(json.dumps(
            {"in_features": n_cols, "out_features": n_rows, "bias": False,
             "activation_function": "torch.nn.modules.linear.Identity"}) + "\n")
        matrices.append(torch.randn((n_rows, n_cols), generator=generator) / n_cols**0.5)
        save_file({"linear.weight": matrices[-1]}, folder / name / "model.safetensors")
        (folder / name / "model.safetensors").chmod(0o644)
    return [matrix.double().numpy() for matrix in matrices]


def sentence_vector(rows, matrices, pooling):
    vector = rows[-1] if pooling == "lasttoken" else rows.mean(0)
    for matrix in matrices:
        vector = matrix @ vector
    return vector / numpy.linalg.norm(vector)


def make_gguf(folder, only):
    import gguf_encoders
    for name in gguf_encoders.ENCODERS:
        if only and name != only:
            continue
        shutil.rmtree(folder / name, ignore_errors=True)
        fields = {key: value for key, value in smaller(name).items() if key != "relative_attention_max_distance"}
        (folder / name).mkdir()
        plain_encoder(name, 1, **fields).save_pretrained(folder / name)
        (folder / name / "generation_config.json").unlink(missing_ok=True)
        (folder / name / "model.safetensors").chmod(0o644)
        if name == "gemma_embedding":
            add_sentence_modules(folder / name, [12, 40, 31], 1)
        gguf_encoders.write_encoder(folder / name, folder / name / "model.gguf")


def make_golden(folder, only):
    make_gguf(folder.parent / "encoders_gguf", only)
    for name, head, seed in GOLDEN:
        if only and name != only:
            continue
        family = FAMILIES[name]
        draw, family.draw = family.draw, lambda rng: draw(rng) | smaller(name)
        model = family.model(head, seed)
        family.draw = draw
        target = folder / f"{name}_{head.lower()}"
        shutil.rmtree(target, ignore_errors=True)
        save(model, target)
        texts = texts_of(random.Random(seed), 3, 30)
        (target / "texts.jsonl").write_text("".join(json.dumps(t) + "\n" for t in texts))
        widths, pooling = SENTENCES.get(name, ([], ""))
        matrices = add_sentence_modules(target, widths, 1, pooling) if widths else None
        for i, rows in enumerate(expected(model.double(), texts)):
            if widths:
                rows = sentence_vector(rows, matrices, pooling)
            numpy.save(target / f"expected_{i}.npy", rows.astype(numpy.float32))


def smaller(name):
    if name == "t5":
        return dict(d_model=12, d_kv=4, d_ff=24, num_heads=2, num_layers=2, feed_forward_proj="gated-gelu",
                    relative_attention_num_buckets=8, relative_attention_max_distance=12)
    if name == "mt5":
        return dict(d_model=12, d_kv=4, d_ff=24, num_heads=2, num_layers=1, feed_forward_proj="gated-gelu",
                    relative_attention_num_buckets=8, relative_attention_max_distance=12)
    if name == "nomic_moe":
        return dict(n_embd=12, n_head=2, n_layer=2, n_inner=20, n_positions=40, num_experts=3, moe_top_k=2, moe_every_n_layers=2)
    if name == "gpt2":
        return dict(n_embd=12, n_head=2, n_layer=2, n_inner=14, n_positions=40)
    if name == "deberta_v2":  # texts longer than distances go, which end within the longest
        return dict(hidden_size=24, num_attention_heads=2, intermediate_size=20, num_hidden_layers=2, position_buckets=8,
                    max_relative_positions=13, share_att_key=True, pos_att_type="p2c|c2p", norm_rel_ebd="layer_norm",
                    position_biased_input=False, type_vocab_size=0, relative_attention=True)
    if name == "distilbert":
        return dict(dim=12, n_heads=2, hidden_dim=20, n_layers=2, max_position_embeddings=40)
    if name == "gemma_embedding":
        return dict(hidden_size=12, num_attention_heads=2, num_key_value_heads=1, head_dim=8, intermediate_size=20,
                    num_hidden_layers=7, max_position_embeddings=40, sliding_window=6, attention_bias=False,
                    query_pre_attn_scalar=5)
    fields = dict(hidden_size=12, num_attention_heads=2 if name != "modernbert" else 3, intermediate_size=20,
                  num_hidden_layers=2, max_position_embeddings=40)
    if name in ("qwen3", "llama"):
        fields |= dict(num_key_value_heads=1, head_dim=8)
    if name == "albert":
        fields |= dict(num_hidden_groups=1, inner_group_num=1)
    if name == "modernbert":
        fields |= dict(num_hidden_layers=4, local_attention=6)
    if name == "ernie":
        fields |= dict(use_task_id=True)
    if name == "eurobert":
        fields |= dict(num_key_value_heads=1)
    return fields


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sweep", metavar="FOVEA")
    parser.add_argument("--golden", type=pathlib.Path, metavar="FOLDER")
    parser.add_argument("--shapes", type=int, default=3)
    parser.add_argument("--only")
    parser.add_argument("--folder", type=pathlib.Path)
    options = parser.parse_args()
    torch.set_num_threads(1)
    if options.golden:
        make_golden(options.golden, options.only)
    if options.sweep and options.folder:
        return compare_folder(options.sweep, options.folder)
    if options.sweep:
        worst, n = sweep_families(options.sweep, options.shapes, options.only)
        sweep_gguf(options.sweep, options.shapes)
        if not options.only:
            pooled_worst, n_pooled = sweep_pooling(options.sweep, options.shapes)
            worst, n = max(worst, pooled_worst), n + n_pooled
        print(f"{n} texts, within {worst:.1e} of the largest value of each")


if __name__ == "__main__":
    main()
