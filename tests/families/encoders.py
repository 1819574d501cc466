#!/usr/bin/env python3
"""Encoders of every family that convert/families reads, with their heads, against transformers and sentence-transformers.

    encoders.py --sweep FOVEA [--shapes N] [--only NAME]   random shapes, to be computed by that command line
    encoders.py --sweep FOVEA --folder MODEL               a folder of sentence-transformers over 1,000 texts
    encoders.py --golden FOLDER [--only NAME]              tests/golden/encoders/FAMILY_HEAD, with what is expected;
                                                           beside it encoders_gguf/FAMILY with a GGUF file of the same

Needs torch, transformers 5 and, for pooling, sentence-transformers. A model's vocabulary is letters, so that a text's
tokens are known here too. Results must lie within 1e-4 of the largest value that is expected.
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
import types

try:
    import numpy
    import torch
    import transformers as T
    from safetensors.torch import save_file
except ImportError as missing:
    print(f"{missing}: nothing was compared")
    sys.exit(77)

LETTERS = [a for a in "abcdefghijklmnopqrstuvwxyz"]
VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *LETTERS]
CLS, SEP, MASK = 2, 3, 4
BOUND = 1e-4


class Family:
    """How a random config of a family is drawn, and its classes by head."""

    def __init__(self, config, prefix, heads, draw, types=2):
        self.config, self.prefix, self.heads, self.draw, self.types = config, prefix, heads, draw, types

    def model(self, head, seed):
        rng = random.Random(seed)
        fields = self.draw(rng)
        fields.setdefault("vocab_size", len(VOCABULARY))
        fields["pad_token_id"] = fields.get("pad_token_id", 0)
        if head == "SequenceClassification" and seed % 3 == 1:
            fields["num_labels"] = 1
        elif head in ("SequenceClassification", "TokenClassification"):
            fields["num_labels"] = rng.choice([2, 3, 17])
        config = self.config(**fields)
        config._attn_implementation = "eager"
        name = self.prefix + ("Model" if head == "Model" else f"For{head}")
        model = getattr(T, name)(config).eval()
        randomize(model, seed)
        return model.float()


def randomize(model, seed):
    """Weights large enough that attention is far from uniform and every bias and norm matters."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            noise = torch.randn(parameter.shape, generator=generator)
            if "norm" in name.lower():
                parameter.copy_(noise * 0.2 + (0.0 if name.endswith("bias") else 1.0))
            elif parameter.dim() == 2:
                parameter.copy_(noise * (1.4 / parameter.shape[1]**0.5))
            else:
                parameter.copy_(noise * 0.3)
    model.tie_weights()


def heads_of(rng, widths=(3, 4, 8, 10, 16)):
    n_heads = rng.choice([1, 2, 3, 4])
    return n_heads, n_heads * rng.choice(widths)


def bert(rng, **more):
    n_heads, width = heads_of(rng)
    return dict(hidden_size=width, num_hidden_layers=rng.choice([1, 2, 3]), num_attention_heads=n_heads,
                intermediate_size=rng.choice([5, 24, 33, 64]), max_position_embeddings=rng.choice([70, 90]),
                layer_norm_eps=rng.choice([1e-12, 1e-5]), hidden_act=rng.choice(["gelu", "gelu_new", "relu"]), **more)


def roberta(rng):
    return bert(rng, type_vocab_size=rng.choice([1, 2]), pad_token_id=1)


def electra(rng):
    return bert(rng, embedding_size=rng.choice([8, 20, 128]))


def albert(rng):
    fields = bert(rng, embedding_size=rng.choice([8, 20]), num_hidden_groups=1, inner_group_num=rng.choice([1, 2]))
    fields["num_hidden_groups"] = rng.choice([1, fields["num_hidden_layers"]])
    return fields


def distilbert(rng):
    n_heads, width = heads_of(rng)
    return dict(dim=width, n_layers=rng.choice([1, 2, 3]), n_heads=n_heads, hidden_dim=rng.choice([5, 24, 33]),
                max_position_embeddings=70, activation=rng.choice(["gelu", "relu"]))


def mpnet(rng):
    return bert(rng, pad_token_id=1)  # 32 buckets, whatever the config says


def modernbert(rng):
    n_heads, width = heads_of(rng, (4, 8, 10, 16))
    return dict(hidden_size=width, num_hidden_layers=rng.choice([2, 3, 5]), num_attention_heads=n_heads,
                intermediate_size=rng.choice([24, 33, 64]), max_position_embeddings=90,
                local_attention=rng.choice([2, 6, 16]), norm_bias=rng.choice([True, False]),
                attention_bias=rng.choice([True, False]), mlp_bias=rng.choice([True, False]),
                classifier_bias=rng.choice([True, False]), classifier_pooling=rng.choice(["cls", "mean"]),
                bos_token_id=2, eos_token_id=3, cls_token_id=2, sep_token_id=3)


def nomic(rng):
    n_heads, width = heads_of(rng, (4, 8, 10, 16))
    return dict(hidden_size=width, num_hidden_layers=rng.choice([1, 2, 3]), num_attention_heads=n_heads,
                intermediate_size=rng.choice([24, 33, 64]), max_position_embeddings=90)


def t5(rng):
    n_heads = rng.choice([1, 2, 3])
    return dict(d_model=rng.choice([12, 24, 30]), d_kv=rng.choice([4, 8, 10]), d_ff=rng.choice([24, 33, 64]),
                num_layers=rng.choice([1, 2, 3]), num_heads=n_heads, n_positions=90,
                relative_attention_num_buckets=rng.choice([8, 16, 32]),
                relative_attention_max_distance=rng.choice([12, 20, 128]),
                feed_forward_proj=rng.choice(["relu", "gated-gelu", "gated-silu"]))


class JinaBert(torch.nn.Module):
    """Jina's second embedding model from its paper (Günther et al. 2023) and Press et al. 2022: transformers has it not."""

    def __init__(self, config):
        super().__init__()
        self.config = config
        width, inner = config.hidden_size, config.intermediate_size
        shapes = {f"embeddings.{name}.weight": (rows, width) for name, rows in (
            ("word_embeddings", config.vocab_size), ("token_type_embeddings", config.type_vocab_size))}
        norms = ["embeddings.LayerNorm"]
        for i in range(config.num_hidden_layers):
            layer = f"encoder.layer.{i}."
            norms += [layer + "attention.output.LayerNorm", layer + "mlp.layernorm"]
            for name in ("self.query", "self.key", "self.value", "output.dense"):
                shapes |= {f"{layer}attention.{name}.weight": (width, width), f"{layer}attention.{name}.bias": (width,)}
            shapes |= {layer + "mlp.gated_layers.weight": (2 * inner, width), layer + "mlp.wo.weight": (width, inner),
                       layer + "mlp.wo.bias": (width,)}
        shapes |= {f"{norm}.{part}": (width,) for norm in norms for part in ("weight", "bias")}
        self.p = {name: torch.nn.Parameter(torch.zeros(shape)) for name, shape in shapes.items()}

    def named_parameters(self, *_, **__):
        return self.p.items()

    def tie_weights(self):
        pass

    def double(self):
        for parameter in self.p.values():
            parameter.data = parameter.data.double()
        return self

    def save_pretrained(self, folder):
        save_file({name: p.data.contiguous() for name, p in self.p.items()}, folder / "model.safetensors")
        (folder / "config.json").write_text(json.dumps(self.config.to_dict(), indent=1) + "\n")

    def linear(self, name, x):
        return torch.nn.functional.linear(x, self.p[name + ".weight"], self.p.get(name + ".bias"))

    def norm(self, name, x):
        weight, bias = self.p[name + ".weight"], self.p[name + ".bias"]
        return torch.nn.functional.layer_norm(x, weight.shape, weight, bias, self.config.layer_norm_eps)

    def slopes(self, n):
        """Powers of 2^(-8/n) for a power of two; for others those of the one below, then every other one of that above."""
        below = 2**math.floor(math.log2(n))
        of = lambda m: [2**(-8 * (i + 1) / m) for i in range(m)]
        return torch.tensor(of(below) + of(2 * below)[::2][:n - below])

    def forward(self, input_ids, token_type_ids, **_):
        c, n = self.config, input_ids.shape[1]
        x = self.p["embeddings.word_embeddings.weight"][input_ids[0]]
        x = self.norm("embeddings.LayerNorm", x + self.p["embeddings.token_type_embeddings.weight"][token_type_ids[0]])
        distance = (torch.arange(n)[:, None] - torch.arange(n)).abs()
        added = -self.slopes(c.num_attention_heads).to(x.dtype)[:, None, None] * distance
        gate = torch.nn.functional.gelu if c.feed_forward_type == "geglu" else torch.relu
        for i in range(c.num_hidden_layers):
            layer = f"encoder.layer.{i}."
            q, k, v = (self.linear(f"{layer}attention.self.{part}", x).unflatten(-1, (c.num_attention_heads, -1))
                       .transpose(0, 1) for part in ("query", "key", "value"))
            weights = (q @ k.transpose(1, 2) / q.shape[-1]**0.5 + added).softmax(-1)
            merged = (weights @ v).transpose(0, 1).flatten(1)
            x = self.norm(layer + "attention.output.LayerNorm", x + self.linear(layer + "attention.output.dense", merged))
            first, second = self.linear(layer + "mlp.gated_layers", x).chunk(2, -1)
            x = self.norm(layer + "mlp.layernorm", x + self.linear(layer + "mlp.wo", gate(first) * second))
        return types.SimpleNamespace(last_hidden_state=x[None])


class JinaFamily(Family):
    def model(self, head, seed):
        rng = random.Random(seed)
        fields = dict(vocab_size=len(VOCABULARY), pad_token_id=0, position_embedding_type="alibi",
                      feed_forward_type=rng.choice(["geglu", "reglu"]), emb_pooler="mean") | self.draw(rng)
        model = JinaBert(T.BertConfig(**fields))
        randomize(model, seed)
        return model


def jina_v3(rng):
    n_heads, width = heads_of(rng, (4, 8, 10, 16))
    return dict(hidden_size=width, num_hidden_layers=rng.choice([1, 2, 3]), num_attention_heads=n_heads,
                intermediate_size=rng.choice([24, 33, 64]), max_position_embeddings=90, type_vocab_size=rng.choice([1, 2]),
                layer_norm_eps=rng.choice([1e-12, 1e-5]), hidden_act=rng.choice(["gelu", "gelu_new"]))


def gemma_embedding(rng):
    n_heads = rng.choice([1, 2, 3, 6])
    n_layers = rng.choice([1, 2, 7])
    return dict(hidden_size=n_heads * rng.choice([5, 7, 12]), num_hidden_layers=n_layers, num_attention_heads=n_heads,
                num_key_value_heads=rng.choice([1, n_heads]), head_dim=rng.choice([4, 8, 10]),
                intermediate_size=rng.choice([24, 33, 64]), max_position_embeddings=90, query_pre_attn_scalar=rng.choice([5, 8]),
                sliding_window=rng.choice([2, 7, 16, 200]), attention_bias=rng.choice([True, False]),
                use_bidirectional_attention=True,
                rope_parameters={"sliding_attention": {"rope_type": "default", "rope_theta": rng.choice([50.0, 10000.0])},
                                 "full_attention": {"rope_type": "default", "rope_theta": 1e6}},
                bos_token_id=2, eos_token_id=3)


USUAL = ["Model", "SequenceClassification", "TokenClassification", "QuestionAnswering", "MaskedLM"]
FAMILIES = {
    "bert": Family(T.BertConfig, "Bert", USUAL, bert),
    "distilbert": Family(T.DistilBertConfig, "DistilBert", USUAL, distilbert, types=0),
    "roberta": Family(T.RobertaConfig, "Roberta", USUAL, roberta),
    "xlm_roberta": Family(T.XLMRobertaConfig, "XLMRoberta", USUAL, roberta),
    "camembert": Family(T.CamembertConfig, "Camembert", USUAL, roberta),
    "electra": Family(T.ElectraConfig, "Electra", USUAL, electra),
    "albert": Family(T.AlbertConfig, "Albert", USUAL, albert),
    "mpnet": Family(T.MPNetConfig, "MPNet", USUAL, mpnet, types=0),
    "modernbert": Family(T.ModernBertConfig, "ModernBert", USUAL, modernbert, types=0),
    "nomic_bert": Family(T.NomicBertConfig, "NomicBert",
                         ["Model", "SequenceClassification", "TokenClassification", "MaskedLM"], nomic),
    "t5": Family(T.T5Config, "T5Encoder", ["Model"], t5, types=0),
    "jina_bert": JinaFamily(None, "", ["Model"], bert),
    "jina_v3": Family(T.JinaEmbeddingsV3Config, "JinaEmbeddingsV3", USUAL, jina_v3),
    "gemma_embedding": Family(T.Gemma3TextConfig, "Gemma3Text", ["Model"], gemma_embedding, types=0),
}


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
    """Each text's result, as fovea encode --head gives it."""
    config = model.config
    n_types = 0 if isinstance(config, (T.DistilBertConfig, T.MPNetConfig, T.ModernBertConfig, T.T5Config,
                                        T.Gemma3TextConfig)) else config.type_vocab_size
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


def computed(fovea, file, text, scratch):
    """Of one text, through a line of JSON."""
    line, out = scratch / "text.jsonl", scratch / "out.npy"
    line.write_text(json.dumps(text) + "\n")
    run(fovea, "encode", file, "--texts", line, "--head", "-o", out)
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
                        got = computed(fovea, scratch / "m.fovea", text, scratch)
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
           "gemma_embedding": dict(query_pre_attn_scalar=8, head_dim=8)}.get(name, {})
    family.draw = lambda rng: draw(rng) | more | own
    model = family.model("Model", seed)
    family.draw = draw
    if name == "t5" and model.config.feed_forward_proj == "gated-silu":
        return plain_encoder(name, seed, **more, feed_forward_proj="gated-gelu")
    return model


def sweep_gguf(fovea, n_shapes):
    """The same bits from a GGUF file as from the folder."""
    try:
        import gguf_models
    except ImportError as missing:
        print(f"{missing}: no GGUF file was compared")
        return
    for name in gguf_models.ENCODERS:
        for seed in range(n_shapes):
            with tempfile.TemporaryDirectory() as scratch:
                scratch = pathlib.Path(scratch)
                plain_encoder(name, seed).save_pretrained(scratch / "model")
                gguf_models.write_encoder(scratch / "model", scratch / "model.gguf")
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
                name = ["bert", "mpnet", "distilbert", "gemma_embedding"][(i + seed) % 4]
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
          ("jina_v3", "SequenceClassification", 0), ("gemma_embedding", "Model", 0)]


def add_sentence_modules(folder, widths, seed):
    """Makes the folder's encoder EmbeddingGemma, as sentence-transformers has it: a mean, matrices, length 1. Returns those."""
    names = ["", "1_Pooling", *(f"{i}_Dense" for i in range(2, len(widths) + 1)), f"{len(widths) + 1}_Normalize"]
    kinds = ["Transformer", "Pooling", *["Dense"] * (len(widths) - 1), "Normalize"]
    (folder / "modules.json").write_text(json.dumps(
        [{"idx": i, "name": str(i), "path": name, "type": f"sentence_transformers.models.{kind}"}
         for i, (name, kind) in enumerate(zip(names, kinds))], indent=1) + "\n")
    for name in names[1:-1]:
        (folder / name).mkdir()
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(
        {"word_embedding_dimension": widths[0], "pooling_mode_cls_token": False, "pooling_mode_mean_tokens": True,
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


def sentence_vector(rows, matrices):
    vector = rows.mean(0)
    for matrix in matrices:
        vector = matrix @ vector
    return vector / numpy.linalg.norm(vector)


def make_gguf(folder, only):
    import gguf_models
    for name in gguf_models.ENCODERS:
        if only and name != only:
            continue
        shutil.rmtree(folder / name, ignore_errors=True)
        fields = {key: value for key, value in smaller(name).items() if key != "relative_attention_max_distance"}
        plain_encoder(name, 1, **fields).save_pretrained(folder / name)
        (folder / name / "generation_config.json").unlink(missing_ok=True)
        (folder / name / "model.safetensors").chmod(0o644)
        if name == "gemma_embedding":
            add_sentence_modules(folder / name, [12, 40, 31], 1)
        gguf_models.write_encoder(folder / name, folder / name / "model.gguf")


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
        matrices = add_sentence_modules(target, [12, 20, 13], 1) if name == "gemma_embedding" else None
        for i, rows in enumerate(expected(model.double(), texts)):
            if matrices:
                rows = sentence_vector(rows, matrices)
            numpy.save(target / f"expected_{i}.npy", rows.astype(numpy.float32))


def smaller(name):
    if name == "t5":
        return dict(d_model=12, d_kv=4, d_ff=24, num_heads=2, num_layers=2, feed_forward_proj="gated-gelu",
                    relative_attention_num_buckets=8, relative_attention_max_distance=12)
    if name == "distilbert":
        return dict(dim=12, n_heads=2, hidden_dim=20, n_layers=2, max_position_embeddings=40)
    if name == "gemma_embedding":
        return dict(hidden_size=12, num_attention_heads=2, num_key_value_heads=1, head_dim=8, intermediate_size=20,
                    num_hidden_layers=7, max_position_embeddings=40, sliding_window=6, attention_bias=False,
                    query_pre_attn_scalar=5)
    fields = dict(hidden_size=12, num_attention_heads=2 if name != "modernbert" else 3, intermediate_size=20,
                  num_hidden_layers=2, max_position_embeddings=40)
    if name == "albert":
        fields |= dict(num_hidden_groups=1, inner_group_num=1)
    if name == "modernbert":
        fields |= dict(num_hidden_layers=4, local_attention=6)
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
