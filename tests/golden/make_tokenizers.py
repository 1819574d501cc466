#!/usr/bin/env python3
"""Trains small vocabularies with the `tokenizers` package and writes what it makes of a mixed text.

Writes beside itself tokenizer_texts.json (the texts) and, for each kind of tokenizer, tokenizer_NAME.json (a
tokenizer.json) and tokenizer_NAME_expected.json. Deterministic. Needs tokenizers == 0.23.3.

    python3 make_tokenizers.py
"""
import json
import pathlib
import random
import struct
import zlib

import tokenizers
from tokenizers import (AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors,
                        trainers)

VERSION = "0.23.3"
HERE = pathlib.Path(__file__).parent
TAIL = r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
LLAMA3 = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}" + TAIL
QWEN2 = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}" + TAIL

SENTENCES = """The lamp in the hall is on, isn't it? I'll turn it off; they've asked, and we're late -- it's 22:45!
She'D said: "DON'T touch the kettle, it'S hot." He'd laughed. WE'LL see, I'M sure; you'Ve been there, they'RE not.
A model of 1234567 parameters and 42 layers costs $3.50 (or 2,99 €) per 1 000 000 tokens, +/-0.5%.
for (int i = 0; i < n; ++i) {\n\tsum += x[i] * 0x1F;   // not fast\r\n}\n\n\nreturn sum;
def f(a, b=None):\n    return {"key": [a, b, 3.14e-10], 'other': r"\\d+"}  # done
https://example.org/a/b?c=d&e=%20f#g  user.name@example.com  C:\\Temp\\x.txt  ~/src/main.cpp
Die Straße führt über die Brücke; größere Äpfel schmecken süß. ŒUVRE, naïve façade, señor, Ångström, coöperate.
Жили-были старик со старухой у самого синего моря. Ёлка, объём, подъезд: №5.
Η γρήγορη αλεπού πηδάει πάνω από το σκυλί· τί κάνεις; Άνθρωπος.
快速的棕色狐狸跳过懒狗。今天是二〇二六年十一月，天气很好！「你好」，他说。
いろはにほへと、ちりぬるを。カタカナとひらがな、ﾊﾝｶｸ、㍿と①②③。
다람쥐 헌 쳇바퀴에 타고파. 한글은 가나다라마바사.
कोई भी व्यक्ति नियम से ऊपर नहीं है। क़लम, ज़मीन, १२३४५।
สวัสดีครับ วันนี้อากาศดีมาก ๑๒๓ บาท
السلام عليكم ورحمة الله، كيف حالك؟ الرقم ١٢٣٤.  שלום עולם, מה שלומך?
Tiếng Việt có nhiều dấu: ậ ề ổ ữ ỳ. Þórður hélt á bók. Zażółć gęślą jaźń. Příliš žluťoučký kůň.
👍🏽 👨‍👩‍👧‍👦 🇫🇷🇯🇵 ❤️ ☎ ½ ¾ ² ³ ⅷ Ⅻ x₁ 𝒜𝔅ℂ 𝟘𝟙𝟚 ﬁ ﬆ ſ K Å
""".strip().split("\n")
SENTENCES = [s.replace("\\n", "\n").replace("\\t", "\t").replace("\\r", "\r") for s in SENTENCES]

# Blocks that the random texts draw from: (first, last), the livelier ones more than once.
BLOCKS = [(0x20, 0x7E)] * 8 + [(0x00, 0x1F), (0x80, 0xFF), (0xA0, 0x17F), (0x180, 0x24F), (0x2B0, 0x2FF)] + [
    (0x300, 0x36F)] * 3 + [(0x370, 0x3FF), (0x400, 0x52F), (0x531, 0x58A), (0x591, 0x5F4), (0x600, 0x6FF),
    (0x900, 0x97F), (0x980, 0xDFF), (0xE01, 0xE5B), (0xF00, 0xFFF), (0x1000, 0x109F), (0x1100, 0x11FF),
    (0x1100, 0x1175), (0x11A8, 0x11C2), (0x1200, 0x137F), (0x1680, 0x1680), (0x1780, 0x17F9), (0x1D00, 0x1DFF),
    (0x1E00, 0x1EFF), (0x1F00, 0x1FFF), (0x2000, 0x206F), (0x2070, 0x209C), (0x20A0, 0x20C0), (0x20D0, 0x20F0),
    (0x2100, 0x218B), (0x2190, 0x23FF), (0x2460, 0x24FF), (0x2581, 0x2581), (0x2600, 0x27BF), (0x2E80, 0x2FD5),
    (0x3000, 0x30FF), (0x3105, 0x31FF), (0x3200, 0x33FF), (0x4E00, 0x9FFF), (0xA000, 0xA4CF), (0xAC00, 0xD7A3),
    (0xE000, 0xE010), (0xF900, 0xFAFF), (0xFB00, 0xFB4F), (0xFE00, 0xFE2F), (0xFF00, 0xFFEF), (0x10000, 0x100FA),
    (0x10400, 0x104FF), (0x11000, 0x1107F), (0x12000, 0x12020), (0x1D100, 0x1D1FF), (0x1D400, 0x1D7FF),
    (0x1E900, 0x1E95F), (0x1F300, 0x1F64F), (0x20000, 0x20020), (0x2F800, 0x2FA1D), (0x10FFF0, 0x10FFFF)]
SNIPPETS = ["'s", "'S", "'ſ", "'re", "'LL", "'d", "'x", " ", "  ", "   ", "\n", "\r\n", "\n\n", "\t", " \n ", "\u00a0",
            "\u3000", "\u2028", "\u0085", "12", "345", "6789", " 7", "\u0663\u0664", "abc", " the", "The", " Lamp", "é",
            "e\u0301", "\u1100\u1161\u11a8", "가\u11a8", "\u0915\u093c", "a\u0323\u0307", "a\u0307\u0323", "...", " !!",
            "?\n", "==", "▁", "▁▁", " ▁", "<", ">", "|", "_", "\x00", "\ufeff", "\u200d", "\u200b", "0", "\U0001f44d"]
SPECIAL = ["<s>", "</s>", "<|end|>", " <mask>", "<mask> ", "[tool]", "toolbox", " box ", "box", "<|end", "<<s>>", "▁<s>",
           "Box", "BOX ", "\u00e9t\u00e9"]
CONTEXTS = ["*", "x*\u0301 ", "1*'*box\n"]  # for every code point, which takes the place of *


def random_char(rng):
    first, last = rng.choice(BLOCKS)
    return chr(rng.randint(first, last))


def random_text(rng, n):
    parts = []
    while sum(map(len, parts)) < n:
        kind = rng.random()
        if kind < 0.35:
            parts.append(rng.choice(SNIPPETS))
        elif kind < 0.6:
            parts.append("".join(random_char(rng) for _ in range(rng.randint(1, 3))))
        elif kind < 0.8:
            first, last = rng.choice(BLOCKS)
            parts.append("".join(chr(rng.randint(first, last)) for _ in range(rng.randint(1, 8))))
        else:
            words = rng.choice(SENTENCES).split(" ")
            at = rng.randrange(len(words))
            parts.append(" ".join(words[at:at + rng.randint(1, 4)]))
    return "".join(parts)


def special_text(rng):
    return "".join(rng.choice(SPECIAL) if rng.random() < 0.5 else random_text(rng, rng.randint(1, 6))
                   for _ in range(rng.randint(1, 8)))


def corpus(rng):
    words = [w for s in SENTENCES for w in s.split(" ")]
    return SENTENCES * 12 + [" ".join(rng.choice(words) for _ in range(rng.randint(3, 20))) for _ in range(800)] + [
        random_text(rng, 40) for _ in range(100)]


def byte_level(use_regex, add_prefix_space=False):
    return pre_tokenizers.ByteLevel(add_prefix_space=add_prefix_space, use_regex=use_regex)


def trained(normalizer, pre_tokenizer, decoder, n_tokens, specials, alphabet, model=None):
    t = Tokenizer(model or models.BPE())
    if normalizer:
        t.normalizer = normalizer
    t.pre_tokenizer = pre_tokenizer
    t.decoder = decoder
    trainer = trainers.BpeTrainer(vocab_size=n_tokens, special_tokens=specials, show_progress=False,
                                  initial_alphabet=alphabet)
    t.train_from_iterator(corpus(random.Random(7)), trainer)
    return t


def edited(t, edit):
    """The tokenizer with its JSON changed by `edit`: what the Python classes do not let one set."""
    parts = json.loads(t.to_str())
    edit(parts)
    return Tokenizer.from_str(json.dumps(parts))


def gpt2():
    t = trained(None, byte_level(True), decoders.ByteLevel(), 1200, ["<|end|>"], pre_tokenizers.ByteLevel.alphabet())
    t.post_processor = processors.ByteLevel(trim_offsets=False)
    return t


def roberta():
    t = trained(None, byte_level(True, True), decoders.ByteLevel(), 900, ["<s>", "</s>"],
                pre_tokenizers.ByteLevel.alphabet())
    t.post_processor = processors.RobertaProcessing(("</s>", 1), ("<s>", 0))
    t.add_special_tokens([AddedToken("<mask>", lstrip=True, normalized=False)])
    t.add_tokens([AddedToken("[tool]", rstrip=True), AddedToken("box", single_word=True), AddedToken("toolbox")])
    return t


def llama3():
    split = pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(LLAMA3), "isolated"), byte_level(False)])
    t = trained(None, split, decoders.ByteLevel(), 1200, [], pre_tokenizers.ByteLevel.alphabet())
    t.add_special_tokens(["<s>", "<|end|>"])
    template = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", t.token_to_id("<s>"))])
    t.post_processor = processors.Sequence([processors.ByteLevel(trim_offsets=False), template])

    def whole_words(parts):
        parts["model"]["ignore_merges"] = True
        # Tokens that merges alone do not reach, which whole words show.
        for word in ("lamp", "Ġkettle", "模型", "ĠÐ¶Ð¸Ð»Ð¸"):
            parts["model"]["vocab"].setdefault(word, len(parts["model"]["vocab"]) + 2)
        for token in parts["added_tokens"]:
            assert token["content"] not in parts["model"]["vocab"]
        n = len(parts["model"]["vocab"])
        ids = sorted(parts["model"]["vocab"].items(), key=lambda item: item[1])
        parts["model"]["vocab"] = {word: i for i, (word, _) in enumerate(ids)}
        for i, token in enumerate(parts["added_tokens"]):
            token["id"] = n + i
        parts["post_processor"]["processors"][1]["special_tokens"]["<s>"]["ids"] = [n]
    return edited(t, whole_words)


def qwen2():
    split = pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(QWEN2), "isolated"), byte_level(False)])
    t = trained(normalizers.NFC(), split, decoders.ByteLevel(), 1200, [], pre_tokenizers.ByteLevel.alphabet())
    t.add_special_tokens(["<|end|>"])
    t.add_tokens([AddedToken("[tool]", normalized=False), AddedToken("\u00e9t\u00e9", normalized=True)])
    return t


def smollm():
    split = pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), byte_level(True)])
    return trained(None, split, decoders.ByteLevel(), 1200, ["<|end|>", "<s>"], pre_tokenizers.ByteLevel.alphabet())


def gaps():
    """Digits in runs, a space before each piece, and bytes that no token spells: an unknown token stands for them."""
    split = pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=False), byte_level(False, True)])
    t = trained(None, split, decoders.ByteLevel(), 600, ["<unk>"], [], models.BPE(unk_token="<unk>"))
    return edited(t, lambda parts: parts["model"].update(fuse_unk=True))


def sentence_piece(n_tokens, normalizer, pre_tokenizer, decoder, fuse_unk=True):
    """A vocabulary as SentencePiece makes them: special tokens, bytes, merged pieces, characters."""
    t = trained(normalizers.Replace(Regex(r"[^\n\x20-\u024f\u0370-\u052f]"), ""),
                pre_tokenizers.Metaspace(prepend_scheme="always", split=True), decoder, n_tokens, [], [])

    def with_bytes(parts):
        pieces = ["<unk>", "<s>", "</s>"] + [f"<0x{b:02X}>" for b in range(256)]
        pieces += [w for w, _ in sorted(parts["model"]["vocab"].items(), key=lambda item: item[1])]
        parts["model"].update(vocab={w: i for i, w in enumerate(dict.fromkeys(pieces))}, unk_token="<unk>",
                              fuse_unk=fuse_unk, byte_fallback=True)
        parts["normalizer"] = json.loads(normalizer.__getstate__()) if normalizer else None
        parts["pre_tokenizer"] = json.loads(pre_tokenizer.__getstate__()) if pre_tokenizer else None
        parts["added_tokens"] = [{"id": i, "content": w, "single_word": False, "lstrip": False, "rstrip": False,
                                  "normalized": False, "special": True} for i, w in enumerate(pieces[:3])]
    t = edited(t, with_bytes)
    t.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
    return t


def llama2():
    decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(),
                                 decoders.Strip(" ", 1, 0)])
    normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    t = sentence_piece(1100, normalizer, None, decoder)
    t.add_tokens([AddedToken("toolbox", normalized=True), AddedToken("box", normalized=True, single_word=True)])
    return t


def mistral():
    decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(),
                                 decoders.Strip(" ", 1, 0)])
    t = sentence_piece(800, None, pre_tokenizers.Metaspace(prepend_scheme="first", split=False), decoder)
    t.add_tokens([AddedToken("[tool]", normalized=False), AddedToken("toolbox", normalized=True)])
    return t


def metaspace():
    space = pre_tokenizers.Metaspace(prepend_scheme="always", split=True)
    t = sentence_piece(800, normalizers.NFC(), space, decoders.Metaspace(prepend_scheme="always"))

    def few_bytes(parts):  # without some bytes' tokens there are unknown characters
        vocab = [w for w in parts["model"]["vocab"] if not w.startswith(("<0xF", "<0xE3"))]
        parts["model"].update(vocab={w: i for i, w in enumerate(vocab)}, fuse_unk=False)
        parts["decoder"] = {"type": "Sequence", "decoders": [{"type": "ByteFallback"}, parts["decoder"]]}
    return edited(t, few_bytes)


def word_piece(n_tokens, cleanup, longest, **normalizer):
    t = Tokenizer(models.WordPiece(unk_token="[UNK]", max_input_chars_per_word=longest))
    t.normalizer = normalizers.BertNormalizer(**normalizer)
    t.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    t.decoder = decoders.WordPiece(cleanup=cleanup)
    # A small alphabet, so that there are unknown characters, and what cleaning up touches.
    extra = ["n't", "'m", "'s", "'ve", "'re", "do", "not", "!", "?", ",", "."]
    t.train_from_iterator(corpus(random.Random(7)) + extra * 9, trainers.WordPieceTrainer(
        vocab_size=n_tokens, special_tokens=["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"], show_progress=False,
        limit_alphabet=340))
    t.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1",
                                                     special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
    t.add_tokens([AddedToken("Toolbox", normalized=True), AddedToken("box", normalized=True, single_word=True),
                  AddedToken("<s>", normalized=False, lstrip=True)])

    def with_contractions(parts):  # words as the pre-tokenizer never cuts them, but vocabularies have them
        vocab = parts["model"]["vocab"]
        for word in extra:
            vocab.setdefault(word, len(vocab) + 10)
    return edited(t, with_contractions)


def bert():
    return word_piece(1000, True, 100)


def bert_cased():
    return word_piece(900, False, 12, lowercase=False, strip_accents=None)


def bert_accents():
    return word_piece(900, True, 100, lowercase=True, strip_accents=False, clean_text=False, handle_chinese_chars=False)


KINDS = [gpt2, roberta, llama3, qwen2, smollm, gaps, llama2, mistral, metaspace, bert, bert_cased, bert_accents]
EVERY_CODE_POINT = [roberta, llama3, qwen2, smollm, metaspace, bert, bert_cased, bert_accents]


def encode(t, text, add_special, parse_special):
    t.encode_special_tokens = not parse_special
    return t.encode(text, add_special_tokens=add_special).ids


def decodings(t, rng):
    """Random ids and what they spell, without special tokens and with. Sequences of a byte-fallback vocabulary keep to
    whole characters: for broken ones the package looks ahead to the end of the run, which a stream cannot."""
    n, broken = t.get_vocab_size(), '"byte_fallback":true' not in t.to_str()
    result = []
    while len(result) < 40:
        ids = [rng.randrange(n) for _ in range(rng.randint(1, 24))] if broken else encode(
            t, "".join(random_text(rng, 4) for _ in range(rng.randint(1, 4))), True, True)
        result.append({"ids": ids, "text": t.decode(ids), "all": t.decode(ids, skip_special_tokens=False)})
    return result


def code_points_crc(t):
    """CRC-32 of the ids that every code point there is gives in some contexts, 50 code points at a time."""
    codes = [c for c in range(0x110000) if not 0xD800 <= c <= 0xDFFF]
    result = 0
    for context in CONTEXTS:
        batch = ["".join(context.replace("*", chr(c)) for c in codes[i:i + 50]) for i in range(0, len(codes), 50)]
        for encoding in t.encode_batch_fast(batch, add_special_tokens=False):
            result = zlib.crc32(struct.pack(f"<{len(encoding.ids)}I", *encoding.ids), result)
    return result


def broken_utf8(rng):
    """Bytes that are mostly no UTF-8, and what they read as: U+FFFD for each maximal subpart of a character."""
    pool = [0x00, 0x41, 0x7F, 0x80, 0x9F, 0xA0, 0xBF, 0xC0, 0xC1, 0xC2, 0xDF, 0xE0, 0xE1, 0xEC, 0xED, 0xEE, 0xEF, 0xF0,
            0xF1, 0xF3, 0xF4, 0xF5, 0xFF, 0x8F, 0x90]
    for _ in range(150):
        text = bytes(rng.choice(pool) for _ in range(rng.randint(1, 16)))
        yield {"bytes": list(text), "text": text.decode("utf-8", "replace")}


def texts():
    rng = random.Random(11)
    mixed = SENTENCES + [random_text(rng, rng.choice([1, 2, 3, 5, 8, 20, 60, 150])) for _ in range(300)]
    mixed += [" ", "  ", "\n", " a", "a ", "", "a" * 300, " " * 70, "\u0301", "\u0301\u0323\u0300", "1" * 40]
    return {"mixed": mixed, "special": SPECIAL + [special_text(rng) for _ in range(120)], "contexts": CONTEXTS,
            "broken": list(broken_utf8(rng))}


def compact(name, value):
    (HERE / name).write_text(json.dumps(value, separators=(",", ":")) + "\n", encoding="ascii")


def main():
    assert tokenizers.__version__ == VERSION, tokenizers.__version__
    samples = texts()
    compact("tokenizer_texts.json", samples)
    for kind in KINDS:
        t = kind()
        compact(f"tokenizer_{kind.__name__}.json", json.loads(t.to_str()))
        compact(f"tokenizer_{kind.__name__}_expected.json", {
            "mixed": [encode(t, text, True, True) for text in samples["mixed"]],
            "special": [encode(t, text, False, True) for text in samples["special"]],
            "plain": [encode(t, text, False, False) for text in samples["special"]],
            "decoded": decodings(t, random.Random(13)),
            "code_points": code_points_crc(t) if kind in EVERY_CODE_POINT else None})
        print(kind.__name__, t.get_vocab_size())


if __name__ == "__main__":
    main()
