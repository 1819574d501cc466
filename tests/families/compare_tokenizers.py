#!/usr/bin/env python3
"""Holds `fovea tokenize` against the `tokenizers` and `sentencepiece` packages, on text made for it.

For each kind of tokenizer that a family of models publishes, a small vocabulary is trained with the family's own
normalizer, pre-tokenizer, post-processor and decoder; then the ids of 5 MB of text are compared, and what they decode to.
Nothing is fetched. Needs tokenizers == 0.23.3 and sentencepiece.

    python3 tests/families/compare_tokenizers.py [--cli build/release/fovea] [--mb 5] [KIND...]
    python3 tests/families/compare_tokenizers.py --golden       # writes the goldens of the kinds that GOLDEN lists
"""
import argparse
import io
import json
import pathlib
import random
import struct
import subprocess
import sys
import tempfile

import sentencepiece
from tokenizers import (AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors,
                        trainers)

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "golden"))
import make_tokenizers as base  # noqa: E402  the texts, and the older kinds
from tokenizer_patterns import *  # noqa: E402,F403
from tokenizer_patterns import CUTS, gguf  # noqa: E402

def split(pattern, behavior="isolated", invert=False):
    return pre_tokenizers.Split(Regex(pattern), behavior, invert)


def byte_level(parts, n_tokens=1500, normalizer=None):
    parts = pre_tokenizers.Sequence(parts)
    t = base.trained(normalizer, parts, decoders.ByteLevel(), n_tokens, ["<|end|>"], pre_tokenizers.ByteLevel.alphabet())
    t.post_processor = processors.ByteLevel(trim_offsets=False)
    return t


def plain():
    return base.byte_level(False)


def falcon():
    return byte_level([pre_tokenizers.Punctuation("contiguous"), base.byte_level(True), pre_tokenizers.Digits(False),
                       split("[0-9][0-9][0-9]")])


def bloom():
    return byte_level([split(BLOOM), plain()])


def deepseek_v3():
    return byte_level([split(r"\p{N}{1,3}"), split(CJK), split(DEEPSEEK3), plain()])


def deepseek_llm():
    return byte_level([split("[\r\n]"), split(LATIN), split(SIGNS), split(r"\s+$"), split(CJK_OLD),
                       pre_tokenizers.Digits(True), plain()])


def deepseek_coder():
    return byte_level([split("[\r\n]"), split(r"\s?\p{L}+"), split(r"\s?\p{P}+"), split(CJK_OLD),
                       pre_tokenizers.Digits(True), plain()])


def gpt_oss():
    t = byte_level([split(O200K, "removed", True), plain()])
    t.add_special_tokens(["<|start|>", "<|message|>"])
    return t


def tekken():
    return byte_level([split(TEKKEN), plain()])


def exaone():
    return byte_level([split(EXAONE), plain()], normalizer=normalizers.NFC())


def cohere():
    t = byte_level([pre_tokenizers.Digits(True), base.byte_level(True)], normalizer=normalizers.NFC())
    t.add_special_tokens(["<BOS>", "<EOS>"])
    bos = t.token_to_id("<BOS>")
    t.post_processor = processors.TemplateProcessing(
        single="<BOS> $A", pair="<BOS> $A $B:1 <EOS>:1", special_tokens=[("<BOS>", bos), ("<EOS>", bos + 1)])
    return t


def gpt_neox():
    t = byte_level([base.byte_level(True)], normalizer=normalizers.NFC())
    t.add_tokens([AddedToken(" " * n, normalized=True) for n in (24, 12, 6, 4, 3, 2)])
    return t


def gemma():
    decoder = decoders.Sequence([decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse()])
    t = base.sentence_piece(1100, normalizers.Replace(" ", "\u2581"), None, decoder)
    t.pre_tokenizer = pre_tokenizers.Split(" ", "merged_with_previous")
    t.add_tokens([AddedToken("\n\n", normalized=False), AddedToken("<start_of_turn>", normalized=False)])
    return t


def behaviors():
    """Every behavior of Split, over patterns that have something between their matches."""
    return byte_level([split("[aeiou]+", "merged_with_previous"), split("[,;.]", "merged_with_next"),
                       split("(?:-|=){2,3}", "contiguous"), split(r"\t", "removed"), split("q", "isolated"), plain()])


def words():
    """WordPiece whose words other pre-tokenizers cut, and added tokens of spaces and full stops."""
    t = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    t.normalizer = normalizers.Lowercase()
    t.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Whitespace(), pre_tokenizers.Digits(True),
                                               pre_tokenizers.FixedLength(7)])
    t.decoder = decoders.WordPiece(cleanup=True)
    t.train_from_iterator(base.corpus(random.Random(7)), trainers.WordPieceTrainer(
        vocab_size=900, special_tokens=["[UNK]"], show_progress=False, limit_alphabet=340))
    t.add_tokens([AddedToken("\n\n", normalized=False, single_word=True, lstrip=True, rstrip=True),
                  AddedToken("..", normalized=False)])
    return t


# ---- Unigram -------------------------------------------------------------------------------------------------------

def sentence_piece_model(last="\U0010ffff", **options):
    """A SentencePiece model's bytes, of text with characters up to `last`."""
    out = io.BytesIO()
    lines = [line for text in base.corpus(random.Random(7))
             for line in "".join(c for c in text if "\0" < c <= last).split("\n") if line]
    settings = dict(vocab_size=1200, model_type="unigram", character_coverage=0.98, num_threads=1,
                    hard_vocab_limit=False, minloglevel=2)
    sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(lines), model_writer=out, **(settings | options))
    return out.getvalue()


def fields(data):
    """(number, value) of a protobuf message: bytes of what has a length, the number of what is one."""
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value
    while at < len(data):
        tag = varint()
        if tag & 7 == 0:
            yield tag >> 3, varint()
            continue
        size = varint() if tag & 7 == 2 else 4 if tag & 7 == 5 else 8
        yield tag >> 3, data[at:at + size]
        at += size


def charsmap(model):
    spec = next(value for number, value in fields(model) if number == 3)
    return next(value for number, value in fields(spec) if number == 2)


def small_charsmap():
    """A map of a few hundred rules, of which some are longer than a character: for goldens."""
    rules = {"\u00a0": " ", "\u3000": " ", "\t": " ", "\n": " ", "\r": " ", "\u200b": "", "\u00ad": "", "\u2581": " ",
             "\ufdfa": "\u0635\u0644\u0649 \u0627\u0644\u0644\u0647", "\u1100\u1161": "\uac00", "e\u0301": "\u00e9",
             "\u00aa": "a", "\u00ba": "o", "\u2122": "TM", "\u2026": "...", "\u00bd": "1\u20442"}
    rules.update({chr(0xFF01 + i): chr(0x21 + i) for i in range(94)})
    with tempfile.TemporaryDirectory() as name:
        path = pathlib.Path(name) / "rules.tsv"
        line = lambda a, b: " ".join(f"{ord(c):X}" for c in a) + "\t" + " ".join(f"{ord(c):X}" for c in b) + "\n"
        path.write_text("".join(line(a, b) for a, b in sorted(rules.items())))
        return charsmap(sentence_piece_model(normalization_rule_tsv=str(path)))


REAL = {}


def real_charsmap():
    if not REAL:
        REAL["nmt_nfkc"] = charsmap(sentence_piece_model(normalization_rule_name="nmt_nfkc"))
    return REAL["nmt_nfkc"]


def unigram(normalizer, pre_tokenizer, specials, template, byte_fallback=False, decoder=None, n_tokens=1200):
    t = Tokenizer(models.Unigram())
    t.normalizer = normalizer
    t.pre_tokenizer = pre_tokenizer
    t.decoder = decoder or decoders.Metaspace()
    letters = normalizers.Replace(Regex(r"[^\x00-\u052f\u0590-\u06ff\u0900-\u097f\u2581\u3040-\u30ff]"), "")
    t.normalizer = normalizers.Sequence([normalizer, letters])  # an alphabet that leaves room for longer pieces
    trainer = trainers.UnigramTrainer(vocab_size=n_tokens, special_tokens=specials, unk_token="<unk>", show_progress=False)
    t.train_from_iterator(base.corpus(random.Random(7)), trainer)
    t.normalizer = normalizer

    def fewer_letters(parts):  # without some there are unknown characters
        rng = random.Random(3)
        vocab = parts["model"]["vocab"]
        kept = [v for v in vocab if len(v[0]) > 1 or v[0] < "\u0250" or rng.random() < 0.7]
        if byte_fallback:
            kept += [[f"<0x{b:02X}>", 0.0] for b in range(256)]
        parts["model"].update(vocab=kept, byte_fallback=byte_fallback,
                              unk_id=[v[0] for v in kept].index("<unk>"))
        ids = {v[0]: i for i, v in enumerate(kept)}
        for token in parts["added_tokens"]:
            token["id"] = ids[token["content"]]
    t = base.edited(t, fewer_letters)
    if template:
        single, pair = template
        names = sorted({word.split(":")[0] for word in pair.split() if not word.startswith("$")})
        t.post_processor = processors.TemplateProcessing(single=single, pair=pair,
                                                         special_tokens=[(n, t.token_to_id(n)) for n in names])
    return t


def spaces(scheme="always"):
    return pre_tokenizers.Metaspace(prepend_scheme=scheme, split=True)


def t5(blob=None):
    normal = normalizers.Sequence([normalizers.Precompiled(blob or real_charsmap()), normalizers.Strip(left=False, right=True),
                                   normalizers.Replace(Regex(" {2,}"), "\u2581")])
    return unigram(normal, spaces(), ["<pad>", "</s>", "<unk>", "<extra_0>"], ("$A </s>", "$A </s> $B </s>"))


def t5_small():
    return t5(small_charsmap())


def xlm_roberta(blob=None):
    t = unigram(normalizers.Precompiled(blob or real_charsmap()),
                pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), spaces()]), ["<s>", "<pad>", "</s>", "<unk>"],
                ("<s> $A </s>", "<s> $A </s> </s> $B </s>"))
    t.add_special_tokens([AddedToken("<mask>", lstrip=True, normalized=False)])
    return t


def camembert():
    return unigram(normalizers.Sequence([normalizers.Replace(Regex(r"[\n\t]"), " "), normalizers.Precompiled(real_charsmap())]),
                   spaces("first"), ["<s>", "<pad>", "</s>", "<unk>"], ("<s> $A </s>", "<s> $A </s> </s> $B </s>"))


def albert(blob=None):
    t = unigram(normalizers.Sequence([
        normalizers.Replace("``", '"'), normalizers.Replace("''", '"'), normalizers.NFKD(), normalizers.StripAccents(),
        normalizers.Lowercase(), normalizers.Precompiled(blob or real_charsmap()), normalizers.Replace(Regex(" {2,}"), " ")]),
        pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), spaces()]), ["<pad>", "<unk>", "[CLS]", "[SEP]"],
        ("[CLS] $A [SEP]", "[CLS] $A [SEP] $B:1 [SEP]:1"))
    t.add_special_tokens([AddedToken("[MASK]", lstrip=True, normalized=False)])
    t.add_tokens([AddedToken("Toolbox", normalized=True)])
    return t


def albert_small():
    return albert(small_charsmap())


def unigram_bytes():
    decoder = decoders.Sequence([decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse(),
                                 decoders.Strip(" ", 1, 0)])
    return unigram(normalizers.Sequence([normalizers.Nmt(), normalizers.NFKC()]), spaces("first"),
                   ["<unk>", "<s>"], ("<s> $A", "<s> $A <s>:1 $B:1"), True, decoder)


KINDS = [falcon, bloom, deepseek_v3, deepseek_llm, deepseek_coder, gpt_oss, tekken, exaone, cohere, gpt_neox, gemma,
         behaviors, words, t5, xlm_roberta, camembert, albert, unigram_bytes]
GOLDEN = [falcon, bloom, deepseek_llm, gpt_oss, behaviors, words, t5_small, albert_small, unigram_bytes]

# SentencePiece's own files: settings of the trainer.
MODELS = {
    "spm_unigram": dict(normalization_rule_name="nmt_nfkc"),
    "spm_unigram_bytes": dict(normalization_rule_name="identity", byte_fallback=True, remove_extra_whitespaces=False),
    "spm_unigram_folded": dict(normalization_rule_name="nmt_nfkc_cf", user_defined_symbols=["<sep>", "tool"],
                               add_dummy_prefix=False),
    "spm_bpe": dict(model_type="bpe", normalization_rule_name="nmt_nfkc"),
    "spm_char": dict(model_type="char", normalization_rule_name="nmt_nfkc", user_defined_symbols=["<sep>", "tool"]),
    "spm_bpe_bytes": dict(model_type="bpe", normalization_rule_name="identity", byte_fallback=True,
                          user_defined_symbols=["<sep>", "tool"], split_digits=True, remove_extra_whitespaces=False),
}


def cut_tokenizer(name):
    """A tokenizer with the patterns of a name, and the same as GGUF."""
    t = byte_level([*(split(p) for p in CUTS[name]), plain()], 1000)
    model = json.loads(t.to_str())["model"]
    tokens = sorted(model["vocab"], key=model["vocab"].get)
    merges = [m if isinstance(m, str) else " ".join(m) for m in model["merges"]]
    values = {"general.architecture": "gpt2", "tokenizer.ggml.model": "gpt2", "tokenizer.ggml.pre": name,
              "tokenizer.ggml.tokens": tokens, "tokenizer.ggml.merges": merges, "tokenizer.ggml.add_bos_token": False,
              "tokenizer.ggml.token_type": [3 if x == "<|end|>" else 1 for x in tokens]}
    return t, gguf(values)


def unigram_gguf(model):
    """A SentencePiece Unigram model as llama.cpp's converter writes it, with an end after each text."""
    pieces, values = [], {}
    for number, value in fields(model):
        if number == 1:
            piece = dict(fields(value))
            pieces.append((piece[1], struct.unpack("<f", piece[2])[0] if 2 in piece else 0.0, piece.get(3, 1)))
    spec = dict(fields(next(value for number, value in fields(model) if number == 3)))
    values = {"general.architecture": "t5", "tokenizer.ggml.model": "t5", "tokenizer.ggml.pre": "default",
              "tokenizer.ggml.tokens": [p[0].decode() for p in pieces], "tokenizer.ggml.scores": [p[1] for p in pieces],
              "tokenizer.ggml.token_type": [p[2] for p in pieces],
              "tokenizer.ggml.add_space_prefix": bool(spec.get(3, 1)),
              "tokenizer.ggml.remove_extra_whitespaces": bool(spec.get(4, 1)), "tokenizer.ggml.unknown_token_id": 0,
              "tokenizer.ggml.bos_token_id": 1, "tokenizer.ggml.eos_token_id": 2, "tokenizer.ggml.add_eos_token": True}
    if spec.get(2):
        values["tokenizer.ggml.precompiled_charsmap"] = spec[2]
    return gguf(values)


def texts(n_bytes, seed):
    rng = random.Random(seed)
    while n_bytes > 0:
        kind = rng.random()
        text = (base.special_text(rng) if kind < 0.2 else " ".join(base.corpus(random.Random(rng.random()))[-300:])
                if kind < 0.25 else base.random_text(rng, rng.randint(1, 3000)))
        n_bytes -= len(text.encode())
        yield text


def run_cli(cli, *arguments, stdin):
    result = subprocess.run([cli, "tokenize", *arguments], input=stdin, capture_output=True)
    if result.returncode:
        raise SystemExit(f"{cli} tokenize {' '.join(arguments)}: {result.stderr.decode().strip()}")
    return result.stdout


def sweep(name, path, encode, decode, options, special=("--special",)):
    """Texts in batches of a program's start: one line of JSON each."""
    n_bytes = n_texts = n_wrong = 0
    batch = []

    def flush():
        nonlocal n_wrong
        lines = "\n".join(json.dumps(text) for text in batch) + "\n"
        got = [json.loads(line) for line in
               run_cli(options.cli, str(path), "--jsonl", "-", *special, "--json", stdin=lines.encode()).splitlines()]
        assert len(got) == len(batch), (len(got), len(batch))
        ids = []
        for text, line in zip(batch, got):
            want = encode(text)
            ids.append(want)
            if line["tokens"] != want:
                n_wrong += 1
                if n_wrong <= options.show:
                    at = next((i for i, (a, b) in enumerate(zip(want, line["tokens"])) if a != b),
                              min(len(want), len(line["tokens"])))
                    print(f"{name}: expected {want[at:at + 8]}, got {line['tokens'][at:at + 8]} at {at} of {text[:4000]!r}"[:600])
        if decode:
            lines = "\n".join(" ".join(map(str, i)) for i in ids) + "\n"
            back = run_cli(options.cli, str(path), "--decode", "-", "--json", stdin=lines.encode()).splitlines()
            for i, line in zip(ids, back):
                if json.loads(line)["text"] != decode(i):
                    n_wrong += 1
                    if n_wrong <= options.show:
                        print(f"{name}: expected {decode(i)!r}"[:300], f"got {json.loads(line)['text']!r}"[:300])
        batch.clear()
    for text in texts(options.mb * 1_000_000, name):
        n_bytes += len(text.encode())
        n_texts += 1
        batch.append(text)
        if len(batch) == 500:
            flush()
    flush()
    print(f"{name}: {n_bytes} bytes, {n_texts} texts, {n_wrong} differences", flush=True)
    return n_wrong


def sweep_tokenizer(make, folder, options):
    t = make()
    path = folder / f"{make.__name__}.json"
    path.write_text(t.to_str())
    decode = None if '"byte_fallback":true' in t.to_str() else lambda ids: t.decode(ids)
    return sweep(make.__name__, path, lambda text: base.encode(t, text, True, True), decode, options)


def sweep_model(name, folder, options):
    path = folder / f"{name}.model"
    path.write_bytes(sentence_piece_model(**MODELS[name]))
    processor = sentencepiece.SentencePieceProcessor(model_file=str(path))
    return sweep(name, path, processor.encode, None, options, ())


def sweep_cut(name, folder, options):
    t, data = cut_tokenizer(name)
    path = folder / f"{name}.gguf"
    path.write_bytes(data)
    return sweep(f"gguf {name}", path, lambda text: base.encode(t, text, True, True), lambda ids: t.decode(ids), options)


def sweep_unigram_gguf(folder, options):
    model = sentence_piece_model(**MODELS["spm_unigram"])
    path = folder / "unigram.gguf"
    path.write_bytes(unigram_gguf(model))
    processor = sentencepiece.SentencePieceProcessor(model_proto=model)
    return sweep("gguf unigram", path, lambda text: processor.encode(text, add_eos=True), None, options, ())


SMALL_MODELS = {
    "unigram": dict(vocab_size=500, last="\u03ff"),
    "unigram_bytes": dict(vocab_size=700, last="\u017f", byte_fallback=True, normalization_rule_name="identity",
                          remove_extra_whitespaces=False, user_defined_symbols=["tool"]),
    "bpe": dict(vocab_size=700, last="\u017f", model_type="bpe", byte_fallback=True,
                normalization_rule_name="identity", user_defined_symbols=["tool"]),
}


def write_model_goldens(text_file):
    for name, settings in SMALL_MODELS.items():
        with tempfile.TemporaryDirectory() as folder:
            rules = pathlib.Path(folder) / "rules.tsv"
            rules.write_text("A0\t20\n9\t20\nA\t20\n3000\t20\nBD\t31 2044 32\n65 301\tE9\n"
                             + "".join(f"{0xFF01 + i:X}\t{0x21 + i:X}\n" for i in range(94)))
            if "normalization_rule_name" not in settings:
                settings = settings | dict(normalization_rule_tsv=str(rules))
            model = sentence_piece_model(**settings)
        (base.HERE / f"spm_{name}.model").write_bytes(model)
        processor = sentencepiece.SentencePieceProcessor(model_proto=model)
        kept = [text for text in text_file["mixed"] if "\0" not in text]
        expected = {"texts": kept, "ids": [processor.encode(text) for text in kept],
                    "decoded": [processor.decode(processor.encode(text)) for text in kept]}
        (base.HERE / f"spm_{name}_expected.json").write_text(json.dumps(expected, separators=(",", ":")))
        if name == "unigram":
            (base.HERE / "gguf" / "tokenizer_unigram.gguf").write_bytes(unigram_gguf(model))
        print(name, len(model))


def write_cut_goldens():
    """Runs of digits between characters that begin, end or go on with what a cut takes for a word or a number."""
    beside = ["", "x", "\u00e9", "_", "-", " ", "\u00bd", "\u00b2", "\u2167", "\u24b6", "\U0001f130", "\u0663", "\u0301", "\u65e5"]
    texts = [f"a {before}{'1234567'[:n]}{behind} b" for before in beside for behind in beside for n in (1, 2, 3, 4, 6, 7)]
    expected = {"texts": texts, "ids": {}}
    for name in ("superbpe", "tiny_aya"):
        t, data = cut_tokenizer(name)
        (base.HERE / "gguf" / f"tokenizer_{name}.gguf").write_bytes(data)
        expected["ids"][name] = [base.encode(t, text, True, True) for text in texts]
    (base.HERE / "tokenizer_cuts_expected.json").write_text(json.dumps(expected, separators=(",", ":")))


def write_goldens():
    text_file = json.loads((base.HERE / "tokenizer_texts.json").read_text())
    write_model_goldens(text_file)
    write_cut_goldens()
    for make in GOLDEN:
        t, rng = make(), random.Random(11)
        path = base.HERE / f"tokenizer_{make.__name__}.json"
        path.write_text(t.to_str())
        expected = {
            "mixed": [base.encode(t, text, True, True) for text in text_file["mixed"]],
            "special": [base.encode(t, text, False, True) for text in text_file["special"]],
            "plain": [base.encode(t, text, False, False) for text in text_file["special"]],
            "pairs": [],
            "decoded": base.decodings(t, rng),
        }
        for a, b in zip(text_file["mixed"][0:40:2], text_file["mixed"][1:40:2]):
            e = t.encode(a, b)
            expected["pairs"].append({"first": a, "second": b, "ids": e.ids, "types": e.type_ids})
        out = base.HERE / f"tokenizer_{make.__name__}_expected.json"
        out.write_text(json.dumps(expected, separators=(",", ":")))
        print(path.name, path.stat().st_size, out.name, out.stat().st_size)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--cli", default="build/release/fovea")
    parser.add_argument("--mb", type=float, default=5)
    parser.add_argument("--show", type=int, default=3)
    parser.add_argument("--golden", action="store_true")
    parser.add_argument("kinds", nargs="*")
    options = parser.parse_args()
    if options.golden:
        return write_goldens()
    makers = {make.__name__: make for make in [*base.KINDS, *KINDS]}
    n_wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        for name in options.kinds or [*makers, *MODELS, *(f"gguf:{name}" for name in CUTS), "unigram_gguf"]:
            if name == "unigram_gguf":
                n_wrong += sweep_unigram_gguf(pathlib.Path(folder), options)
            elif name.startswith("gguf:"):
                n_wrong += sweep_cut(name[5:], pathlib.Path(folder), options)
            elif name in MODELS:
                n_wrong += sweep_model(name, pathlib.Path(folder), options)
            else:
                n_wrong += sweep_tokenizer(makers[name], pathlib.Path(folder), options)
    raise SystemExit(1 if n_wrong else 0)


if __name__ == "__main__":
    main()
