#!/usr/bin/env python3
"""Writes unicode.bin: what the converter copies into tokenizer sections, and makes classes of patterns of.

The reference is the behaviour of the `tokenizers` package, not a version of Unicode: its regular expressions, its
digits and its normalizer follow different ones. So every fact is asked of the package, for every code point, and the
tables are checked against it before they are written. Needs tokenizers == 0.23.3; takes about two minutes.

    python3 make_unicode_data.py
"""
import bisect
import pathlib
import random
import struct

import tokenizers
from tokenizers import AddedToken, Regex, Tokenizer, models, normalizers, pre_tokenizers

VERSION = "0.23.3"
CODES = [c for c in range(0x110000) if not 0xD800 <= c <= 0xDFFF]
BATCH = 2048
LETTER, NUMBER, SPACE, NUMERIC, WORD = 1, 2, 4, 8, 16  # UnicodeClass in engine/format/format.h
DROPPED, BLANK, IDEOGRAPH, PUNCTUATION, MARK = 1, 2, 4, 8, 16  # CharacterBit there

# One character of every canonical combining class the package knows (Unicode Standard, section 4.3), for comparison.
CLASS_OF = {
    0x334: 1, 0x93C: 7, 0x3099: 8, 0x94D: 9, 0x5B0: 10, 0x5B1: 11, 0x5B2: 12, 0x5B3: 13, 0x5B4: 14, 0x5B5: 15,
    0x5B6: 16, 0x5B7: 17, 0x5B8: 18, 0x5B9: 19, 0x5BB: 20, 0x5BC: 21, 0x5BD: 22, 0x5BF: 23, 0x5C1: 24, 0x5C2: 25,
    0xFB1E: 26, 0x64B: 27, 0x64C: 28, 0x64D: 29, 0x64E: 30, 0x64F: 31, 0x650: 32, 0x651: 33, 0x652: 34, 0x670: 35,
    0x711: 36, 0xC55: 84, 0xC56: 91, 0xE38: 103, 0xE48: 107, 0xEB8: 118, 0xEC8: 122, 0xF71: 129, 0xF72: 130, 0xF74: 132,
    0x321: 202, 0x1DCE: 214, 0x31B: 216, 0x302A: 218, 0x316: 220, 0x59A: 222, 0x302E: 224, 0x1D16D: 226, 0x5AE: 228, 0x301: 230,
    0x315: 232, 0x35C: 233, 0x35D: 234, 0x345: 240,
}

NFC, NFD = normalizers.NFC(), normalizers.NFD()


def batches():
    for i in range(0, len(CODES), BATCH):
        yield CODES[i:i + BATCH]


def matching(pattern):
    """Code points that `pattern`, which matches one character, matches."""
    split, found = pre_tokenizers.Split(Regex(pattern), "removed"), set()
    for codes in batches():
        left = set("".join(piece for piece, _ in split.pre_tokenize_str("".join(map(chr, codes)))))
        found.update(c for c in codes if chr(c) not in left)
    return found


def numeric():
    digits, found = pre_tokenizers.Digits(individual_digits=True), set()
    for codes in batches():
        pieces = digits.pre_tokenize_str("".join("a" + chr(c) for c in codes))
        found.update(ord(piece) for piece, _ in pieces if len(piece) == 1 and piece != "a")
    return found


def added_token_classes():
    """(word, space) as the matching of added tokens sees them: single_word and rstrip."""
    words, spaces = set(), set()
    single, strip = (Tokenizer(models.BPE({"?": 0}, [], unk_token="?")) for _ in range(2))
    single.add_tokens([AddedToken("Q", single_word=True, normalized=False)])
    strip.add_tokens([AddedToken("Q", rstrip=True, normalized=False)])
    for codes in batches():
        texts = [chr(c) + "Q" for c in codes]
        words.update(c for c, e in zip(codes, single.encode_batch(texts)) if 1 not in e.ids)
        texts = ["Q" + chr(c) for c in codes]
        spaces.update(c for c, e in zip(codes, strip.encode_batch(texts)) if len(e.ids) == 1)
    return words, spaces


def bert(**only):
    settings = dict(clean_text=False, handle_chinese_chars=False, strip_accents=False, lowercase=False)
    return normalizers.BertNormalizer(**(settings | only)).normalize_str


def characters():
    """({code point: CharacterBit}, {code point: lower case}), from BERT's normalizer and pre-tokenizer."""
    clean, apart, strip, lower = (bert(**{name: True}) for name in (
        "clean_text", "handle_chinese_chars", "strip_accents", "lowercase"))
    bits, lower_case, pieces = {}, {}, pre_tokenizers.BertPreTokenizer().pre_tokenize_str
    for c in CODES:
        x = chr(c)
        cut, cleaned = [piece for piece, _ in pieces("a" + x + "b")], clean("a" + x + "b")
        blank, dropped = cut == ["a", "b"], cleaned == "ab"
        assert cleaned == ("ab" if dropped else "a b" if blank else "a" + x + "b"), hex(c)
        assert cut in (["a", "b"], ["a", x, "b"], ["a" + x + "b"]), hex(c)
        mark = NFD.normalize_str(x) == x and strip(x) == ""
        bits[c] = (dropped * DROPPED | blank * BLANK | (cut == ["a", x, "b"]) * PUNCTUATION | mark * MARK
                   | (apart(x) == f" {x} ") * IDEOGRAPH)
        if lower(x) != x:
            lower_case[c] = [ord(y) for y in lower(x)] + [0]
    both = bert(strip_accents=True, lowercase=True)
    for c in CODES:  # what one step of the engine's for each does is what the package does in one
        x = chr(c)
        whole = NFD.normalize_str("".join(map(chr, lower_case.get(c, [c, 0])[:-1])))
        stripped = "".join(y for y in whole if not bits[ord(y)] & MARK)
        assert both(x) == stripped and len(stripped) <= len(x.encode()), hex(c)
    return bits, lower_case


def combining_classes():
    """{code point: class}, from where the package's normalizer puts each between known ones."""
    probes = sorted((k, chr(c)) for c, k in CLASS_OF.items())
    probe_classes = [k for k, _ in probes]
    decompositions = {c: NFD.normalize_str(chr(c)) for c in CODES}
    reorders = lambda x, y: x != y and NFD.normalize_str("a" + x + y) == "a" + y + x
    result = {}
    for c in CODES:
        x = chr(c)
        if decompositions[c] != x or not (reorders(x, "\u0334") or reorders("\u0345", x)):
            continue
        # Classes below c's are those that move before it.
        below = bisect.bisect_left(range(len(probes)), True, key=lambda i: not reorders(x, probes[i][1]))
        assert below < len(probes), hex(c)
        assert below + 1 == len(probes) or reorders(probes[below + 1][1], x), (hex(c), "a class between the known ones")
        assert not reorders(probes[below][1], x), (hex(c), "a class between the known ones")
        result[c] = probe_classes[below]
    return result, decompositions


def pairs(decompositions):
    """{code point: (first, second, composes)}, Hangul syllables apart: they are computed."""
    whole = {}
    for c, d in decompositions.items():
        if d != chr(c) and not 0xAC00 <= c < 0xD7A4 and (d not in whole or NFC.normalize_str(d) == chr(c)):
            whole[d] = c
    result = {}
    for c, d in decompositions.items():
        if d == chr(c) or 0xAC00 <= c < 0xD7A4:
            continue
        if len(d) == 1:
            result[c] = (ord(d), 0, False)
        else:
            first = ord(d[0]) if len(d) == 2 else whole[d[:-1]]
            result[c] = (first, ord(d[-1]), NFC.normalize_str(d) == chr(c))
    return result


def nfc(text, classes, table, composed):
    """NFC by the tables, as the engine computes it; for the check below."""
    def decompose(c):
        if 0xAC00 <= c < 0xD7A4:
            s = c - 0xAC00
            return [0x1100 + s // 588, 0x1161 + s % 588 // 28] + ([0x11A7 + s % 28] if s % 28 else [])
        if c not in table:
            return [c]
        first, second, _ = table[c]
        return decompose(first) + ([second] if second else [])

    def compose(a, b):
        if 0x1100 <= a < 0x1113 and 0x1161 <= b < 0x1176:
            return 0xAC00 + ((a - 0x1100) * 21 + b - 0x1161) * 28
        if 0xAC00 <= a < 0xD7A4 and (a - 0xAC00) % 28 == 0 and 0x11A8 <= b < 0x11C3:
            return a + b - 0x11A7
        return composed.get((a, b))

    codes = [d for ch in text for d in decompose(ord(ch))]
    out, i = [], 0
    while i < len(codes):
        j = i
        while j < len(codes) and classes.get(codes[j], 0):
            j += 1
        out += sorted(codes[i:j], key=lambda c: classes[c]) if j > i else [codes[i]]
        i = max(j, i + 1)
    result, starter, last = [], -1, 0
    for c in out:
        k = classes.get(c, 0)
        if starter >= 0 and (starter == len(result) - 1 or 0 < last < k):
            joined = compose(result[starter], c)
            if joined is not None:
                result[starter] = joined
                continue
        if k == 0:
            starter = len(result)
        last = k
        result.append(c)
    return "".join(map(chr, result))


def check(classes, table):
    composed = {(a, b): c for c, (a, b, composes) in table.items() if composes}
    texts = [chr(c) for c in CODES] + ["a" + chr(c) + "\u0301" for c in CODES]
    rng = random.Random(1)
    marks, starters = sorted(classes), sorted({a for a, _ in composed} | {b for _, b in composed})
    lively = marks + starters + sorted(table) + list(range(0x1100, 0x1200)) + list(range(0xAC00, 0xD7A4, 7))
    texts += ["".join(chr(rng.choice(lively)) for _ in range(rng.randint(2, 9))) for _ in range(400000)]
    texts += [chr(rng.choice(starters)) + "".join(chr(rng.choice(marks)) for _ in range(rng.randint(2, 6)))
              for _ in range(200000)]
    for text in texts:
        assert nfc(text, classes, table, composed) == NFC.normalize_str(text), [hex(ord(c)) for c in text]
    print(len(texts), "texts normalized as the package does")


CATEGORIES = "Cn Lu Ll Lt Lm Lo Mn Mc Me Nd Nl No Pc Pd Ps Pe Pi Pf Po Sm Sc Sk So Zs Zl Zp Cc Cf Co".split()
HAN, ACCENT = 32, 64  # beside a category's number: category_of in code_set.cpp
JOINS, TAKES_NEXT, ALONE = 1, 2, 4  # ClusterBit in engine/format/format.h


def categories():
    """{code point: number of its category, HAN, ACCENT}, as Split's patterns and StripAccents have them."""
    result = {}
    for number, name in enumerate(CATEGORIES):
        for c in matching(r"\p{%s}" % name) if number else ():
            assert c not in result, hex(c)
            result[c] = number
    strip = normalizers.StripAccents().normalize_str
    for c in CODES:
        if strip(chr(c)) == "":
            result[c] = result.get(c, 0) | ACCENT
    for c in matching(r"\p{Han}"):
        result[c] = result.get(c, 0) | HAN
    return result


def compatibility():
    """{code point: what NFKD makes of it, where NFD does not}; a map of these before form C or D gives form KC or KD."""
    nfkd, result = normalizers.NFKD().normalize_str, {}
    for c in CODES:
        if nfkd(chr(c)) != NFD.normalize_str(chr(c)):
            result[c] = NFD.normalize_str(nfkd(chr(c)))
    mapped = lambda text: "".join(result.get(ord(x), x) for x in text)
    rng = random.Random(2)
    lively = sorted(result) + list(range(0x300, 0x370)) * 9 + list(range(0x41, 0x5B)) + list(range(0x1100, 0x1200))
    for _ in range(200000):
        text = "".join(chr(rng.choice(lively)) for _ in range(rng.randint(1, 6)))
        assert NFD.normalize_str(mapped(text)) == nfkd(text), [hex(ord(x)) for x in text]
        assert NFC.normalize_str(mapped(text)) == normalizers.NFKC().normalize_str(text), [hex(ord(x)) for x in text]
    return result


def double_array(keys):
    """A trie as SentencePiece stores them, for probing: {key: value} with keys of bytes; slow and roomy."""
    units, children = {0: 0}, {}
    for key in keys:
        for i in range(len(key)):
            children.setdefault(key[:i], set()).add(key[i])
    free, queue, leaves = 256, [(b"", 0)], []
    while queue:  # a block for every node that has children; one unit for each other, behind them
        prefix, at = queue.pop()
        if prefix not in children:
            leaves.append((prefix, at))
            continue
        assert prefix not in keys, "a key that starts another"
        units[at] |= (at ^ free) << 10
        for label in children[prefix]:
            units[free ^ label] = label
            queue.append((prefix + bytes([label]), free ^ label))
        free += 256
    for prefix, at in leaves:
        assert at ^ free < 1 << 21, "too many nodes"
        units[at] |= (at ^ free) << 10 | 1 << 8
        units[free] = 1 << 31 | keys[prefix]
        free += 1
    return [units.get(i, 0) for i in range((free + 511) // 256 * 256)]  # a look-up may go on to the end of a block


def clusters():
    """{code point: ClusterBit}, from what Precompiled does: a cluster of up to 5 bytes is replaced at once."""
    def precompiled(keys):
        units = double_array(keys)
        blob = struct.pack("<I", 4 * len(units)) + struct.pack(f"<{len(units)}I", *units) + b"X\0"
        return normalizers.Precompiled(blob).normalize_str

    after_a, result = precompiled({b"a": 0}), {0: ALONE}  # a key can't hold a zero byte: as other controls
    for c in CODES:
        if c and after_a("a" + chr(c)) == "X":
            result[c] = JOINS
    probes = [0x61, 0x301]
    blocks = [CODES[i:i + 0x4000] for i in range(0, len(CODES), 0x4000)]
    for codes in [[c for c in codes if c and c not in probes] for codes in blocks]:
        mapped = precompiled({chr(c).encode(): 0 for c in codes})
        for c in codes:
            if mapped(chr(c) + "a") == "X":
                result[c] = result.get(c, 0) | TAKES_NEXT
            if c < 0x10000 and mapped(chr(c) + "\u0301") == "X\u0301":  # beyond, the two are longer than a cluster that counts
                result[c] = result.get(c, 0) | ALONE
    return result


def ranges(values):
    """[start << 8 | value]: value holds from start to the next one's start."""
    result, last = [], 0
    for c in range(0x110000):
        value = values.get(c, 0)
        if value != last:
            result.append(c << 8 | value)
            last = value
    return result


def halves(numbers):
    """Numbers of 64 bits as words, the lower one first."""
    return [word for x in numbers for word in (x & 0xFFFFFFFF, x >> 32)]


def stretches(mapping):
    """Stretches of code points whose one character ascends with them: 1 << 31 | length << 21 | first code point, first
    character. Others: code point | number of characters << 21, and those."""
    numbers, last = [], None
    for c, to in sorted(mapping.items()):
        if last is not None and len(to) == 1 and (c, ord(to)) == (last[0] + last[2], last[1] + last[2]):
            last[2] += 1
            numbers[-2:] = [1 << 31 | last[2] << 21 | last[0], last[1]]
        else:
            last = [c, ord(to), 1] if len(to) == 1 else None
            numbers += [len(to) << 21 | c, *map(ord, to)]
    return numbers


def main():
    assert tokenizers.__version__ == VERSION, tokenizers.__version__
    words, spaces = added_token_classes()
    space = matching(r"\s")
    assert spaces == space
    flags = {}
    for members, flag in ((matching(r"\p{L}"), LETTER), (matching(r"\p{N}"), NUMBER), (space, SPACE),
                          (numeric(), NUMERIC), (words, WORD)):
        for c in members:
            flags[c] = flags.get(c, 0) | flag
    bits, lower_case = characters()
    classes, decompositions = combining_classes()
    table = pairs(decompositions)
    check(classes, table)
    tables = [  # in the order of UnicodeTable in unicode_data.h
        ranges(flags),
        ranges(bits),
        halves(c | to[0] << 21 | to[1] << 42 for c, to in sorted(lower_case.items())),
        ranges(classes),
        halves(c | a << 21 | b << 42 | composes << 63 for c, (a, b, composes) in sorted(table.items())),
        ranges(clusters()),
        ranges(categories()),
        stretches(compatibility()),
    ]
    words = [len(table) for table in tables] + [word for table in tables for word in table]
    pathlib.Path(__file__).with_name("unicode.bin").write_bytes(struct.pack(f"<{len(words)}I", *words))


if __name__ == "__main__":
    main()
