"""The patterns that families of models cut words by, as their own files spell them, and a writer of GGUF files."""
import struct

import make_tokenizers as base

TAIL = base.TAIL
CONTRACTIONS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
UPPER, LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
O200K = (rf"[^\r\n\p{{L}}\p{{N}}]?{UPPER}*{LOWER}+{CONTRACTIONS}?|[^\r\n\p{{L}}\p{{N}}]?{UPPER}+{LOWER}*{CONTRACTIONS}?"
         r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")
TEKKEN = (rf"[^\r\n\p{{L}}\p{{N}}]?{UPPER}*{LOWER}+|[^\r\n\p{{L}}\p{{N}}]?{UPPER}+{LOWER}*"
          r"|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")
DEEPSEEK3 = (r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+"
             r"| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
EXAONE = (CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+|\p{N}"
          r"| ?[^\s\p{L}\p{N}]+[\r\n/]?|\s*[\r\n]|\s+(?!\S)|\s+")
BLOOM = " ?[^(\\s|[.,!?\u2026\u3002\uff0c\u3001\u0964\u06d4\u060c])]+"
CJK = "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+"
CJK_OLD = "[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+"
LATIN = "\\s?[A-Za-z\u00b5\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u01ba\u01bc-\u01bf\u01c4-\u0293\u0370-\u0373\u0386\u0388-\u03f5\u0400-\u052f]+"
SIGNS = "\\s?[!-/:-~\uff01-\uff0f\uff1a-\uff5e\u2018-\u201f\u3000-\u3002]+"

# The patterns behind llama.cpp's names, as the models' own files have them; each cuts what those before it left.
LLAMA3, QWEN2, GPT2 = base.LLAMA3, base.QWEN2, r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
WORD, SIGN = r"[^\r\n\p{L}\p{N}]?\p{L}+", r" ?[^\s\p{L}\p{N}]+"
SPACE = r"|\s*[\r\n]+|\s+(?!\S)|\s+"
NO_HAN = r"&&[^\p{Han}]]"
BLOOM_GGUF = " ?[^(\\s|.,!?\u2026\u3002\uff0c\u3001\u0964\u06d4\u060c)]+"
CUTS = {
    "gpt-2": [GPT2], "smollm": [r"\p{N}", GPT2], "glm4": [LLAMA3], "stablelm2": [QWEN2],
    "jais-2": [CONTRACTIONS + "|" + WORD + r"|\p{N}{1,3}|" + SIGN + r"[\r\n]*|\s*[\r\n]+"
               + "".join(r"|\s{%d}(?!\S)" % 2 ** n for n in range(9, 1, -1)) + r"|\s{1,2}(?!\S)|\s{1}"],
    "minicpm5": [r"\p{N}{1,3}", CONTRACTIONS + "|" + WORD + r"|\p{N}+|" + SIGN + r"[\r\n]*" + SPACE],
    "falcon": [r"[\p{P}\$\+<=>\^~\|`]+", GPT2, "[0-9][0-9][0-9]"],
    "bloom": [BLOOM_GGUF], "viking": [BLOOM_GGUF, r"\p{N}"],
    "deepseek-coder": ["[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", CJK_OLD, r"\p{N}"],
    "deepseek-v3": [r"\p{N}{1,3}", CJK, DEEPSEEK3],
    "spark2_5": [r"\p{N}{1,3}", CJK, DEEPSEEK3.replace(r"[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+", r"[\p{P}\p{S}]+|[\r\n]"), r"\p{N}"],
    "youtu": ["[\uac00-\ud7a3\u3131-\u318e]+|[\uff01\u2026\u201c\u201d\u2018\u2019\u2014\uff1a\uff1b\uff0c\u3001-\u303f\ufe30-\ufe4f]+"
              "|[\u3105-\u312f]+|[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+", O200K.replace(r"\p{N}{1,3}", r"\p{N}")],
    "tekken": [TEKKEN], "gpt-4o": [O200K], "exaone-moe": [EXAONE],
    "kimi-k2": [r"\p{Han}+|" + O200K.replace(r"\p{M}]", r"\p{M}" + NO_HAN).replace(r"[\r\n/]*", r"[\r\n]*")],
    "superbpe": [r"\p{N}+", r"(?=(\d{3})+(?!\d))"],
    "tiny_aya": [r"\d{1,3}(?=(?:\d{3})*\b)", O200K],
    "bailingmoe": [r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+"],
    "seed-coder": [CONTRACTIONS + "|" + WORD + r"|\p{N}{1}| ?[^\s\p{L}\p{N}\r\n]+" + SPACE],
    "ufakzeka": [WORD + r"|\p{N}|" + SIGN + r"[\r\n]*" + SPACE],
    "laguna": [r"[^\n]+|[\n]+", QWEN2],
    "chameleon": ["<sentinel:[0-9]+>", "(IMGIMG)((A|B|C|D|E|F|G|H|I){1,4})Z", r"([\t\n]|    |  )", r"\p{N}",
                  r"[\p{P}!-/:-@\[-`{-~]", GPT2],
}


def gguf(values):
    """The bytes of a GGUF file, version 3, without tensors."""
    def text(x):
        x = x if isinstance(x, bytes) else x.encode()
        return struct.pack("<Q", len(x)) + x

    def value(x):
        if isinstance(x, bool):
            return struct.pack("<IB", 7, x)
        if isinstance(x, int):
            return struct.pack("<II", 4, x)
        if isinstance(x, str):
            return struct.pack("<I", 8) + text(x)
        if isinstance(x, bytes):
            return struct.pack("<IIQ", 9, 0, len(x)) + x
        kind, pack = {str: (8, text), int: (5, lambda n: struct.pack("<i", n)), float: (6, lambda n: struct.pack("<f", n))}[type(x[0])]
        return struct.pack("<IIQ", 9, kind, len(x)) + b"".join(map(pack, x))
    return b"GGUF" + struct.pack("<IQQ", 3, 0, len(values)) + b"".join(text(k) + value(v) for k, v in values.items())
