#!/usr/bin/env python3
"""JSON schemas with texts that fit them and texts that do not: what is taken by forms, and by xgrammar, llguidance, outlines_core.

    compare_forms.py ANSWERS FOLDER [--every N] [--engines NAME,...] [--walks N] [--show FILE]

ANSWERS is the program fovea_form_answers, FOLDER has JSON files that are schemas (JSONSchemaBench's data), or have a "schema" and
"tests" of "data" and whether it is "valid" (its MaskBench). All engines get the same 150,000 tokens and texts cut into the same
tokens; each engine has one thread. With --walks each draws answers of at most 300 allowed tokens, which jsonschema judges. Others than
fovea have a process and 10 s of CPU time for a schema; what takes longer or ends the process counts as refused.
--show writes the faults: what is refused, texts that fit and are not taken, texts that do not fit and are, answers that do not fit.
"""
import argparse
import json
import os
import pathlib
import resource
import signal
import subprocess
import sys
import time

import jsonschema
import numpy as np

sys.path.append(str(pathlib.Path(__file__).parents[2] / "tests/host/grammar"))
import schema_walks

LONGEST = 64  # bytes of the tokens that texts are cut into, as ANSWERS cuts them
MOST_TOKENS, LIKELIER = 300, 12  # of a walk, and how much likelier tokens are that close a part, as in ANSWERS
PATIENCE = 10  # seconds of CPU time for a schema


class Vocabulary:
    def __init__(self, answers):
        lines = subprocess.run([answers, "--vocabulary"], capture_output=True, text=True, check=True).stdout.split("\n")[:-1]
        self.tokens = [bytes.fromhex(line) for line in lines]
        self.end = len(self.tokens) - 1
        self.ids = {token: i for i, token in enumerate(self.tokens[:-1])}
        self.closing = np.array([any(byte in token for byte in b'"}]') for token in self.tokens])

    def tokens_of(self, text):
        data, at = text.encode(), 0
        while at < len(data):
            n = next(n for n in range(min(LONGEST, len(data) - at), 0, -1) if data[at : at + n] in self.ids)
            yield self.ids[data[at : at + n]]
            at += n


class Fovea:
    def __init__(self, answers, _vocabulary):
        self.process = subprocess.Popen([answers], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def answer(self, schema, texts, walks):
        self.process.stdin.write(json.dumps({"schema": schema, "texts": texts, "walks": walks}) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())


class Peer:
    """An engine in this process: compile(schema) gives what makes matchers; those have mask(), allows(token), all() and advance(token)."""

    def __init__(self, _answers, vocabulary):
        self.vocabulary = vocabulary
        self.start()

    def answer(self, schema, texts, walks):
        """In a process of its own, which has all that was started: no engine can be stopped where it does not ask Python."""
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reading)
            resource.setrlimit(resource.RLIMIT_CPU, (PATIENCE, PATIENCE))
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            signal.alarm(12 * PATIENCE)  # ends an engine that waits for a thread that was not forked
            try:
                with open(writing, "w") as out:
                    out.write(json.dumps(self.compute(schema, texts, walks)))
            finally:
                os._exit(0)
        os.close(writing)
        with open(reading) as source:
            answer = source.read()
        os.waitpid(child, 0)
        return json.loads(answer) if answer else {"refused": f"it took more than {PATIENCE} s, or ended its process", "compiled": PATIENCE * 1e3}

    def compute(self, schema, texts, walks):
        began = time.thread_time()
        try:
            compiled = self.compile(schema)
            result = {"compiled": (time.thread_time() - began) * 1e3, "masks": []}
            result["taken"] = [self.takes(self.matcher(compiled), text, result["masks"]) for text in texts]
            random = np.random.default_rng(1)
            drawn = [self.walk(self.matcher(compiled), random, result["masks"]) for _ in range(walks)]
            result["answers"] = [text for text in drawn if text is not None]
            return result
        except Exception as error:  # each has its own
            return {"refused": str(error), "compiled": (time.thread_time() - began) * 1e3}

    def takes(self, matcher, text, masks):
        began = time.thread_time()
        matcher.mask()
        masks.append((time.thread_time() - began) * 1e6)
        for token in self.vocabulary.tokens_of(text):
            if not matcher.allows(token):
                return False
            began = time.thread_time()
            matcher.advance(token)
            matcher.mask()
            masks.append((time.thread_time() - began) * 1e6)
        return matcher.allows(self.vocabulary.end)

    def walk(self, matcher, random, masks):
        """A text of allowed tokens, or None if it does not end."""
        text = b""
        for _ in range(MOST_TOKENS):
            began = time.thread_time()
            matcher.mask()
            masks.append((time.thread_time() - began) * 1e6)
            allowed = matcher.all()
            allowed = allowed[allowed < len(self.vocabulary.tokens)]
            if not len(allowed):
                raise ValueError("no token is allowed")
            weights = np.cumsum(np.where(self.vocabulary.closing[allowed], LIKELIER, 1))
            token = int(allowed[np.searchsorted(weights, random.integers(weights[-1]), side="right")])
            if token == self.vocabulary.end or (matcher.allows(self.vocabulary.end) and random.integers(3) == 0):
                return text.decode(errors="replace")
            text += self.vocabulary.tokens[token]
            matcher.advance(token)
        return None


class Bits:
    """A matcher whose masks are bits."""

    def all(self):
        return np.flatnonzero(np.unpackbits(self.bits.view(np.uint8)[0], bitorder="little"))

    def allows(self, token):
        return bool(self.bits[0, token // 32] >> (token % 32) & 1)


class XGrammar(Peer):
    def start(self):
        import xgrammar

        self.module = xgrammar
        info = xgrammar.TokenizerInfo(self.vocabulary.tokens, xgrammar.VocabType.RAW, stop_token_ids=[self.vocabulary.end])
        self.compiler = xgrammar.GrammarCompiler(info, max_threads=1, cache_enabled=False)
        self.shared = xgrammar.allocate_token_bitmask(1, info.vocab_size)

    def compile(self, schema):
        return self.compiler.compile_json_schema(json.dumps(schema), any_whitespace=True, strict_mode=False)

    def matcher(self, compiled):
        class Matcher(Bits):
            def __init__(self, matcher, shared):
                self.matcher, self.shared, self.bits = matcher, shared, shared.numpy().view(np.uint32)

            def mask(self):
                self.matcher.fill_next_token_bitmask(self.shared)

            def advance(self, token):
                self.matcher.accept_token(token)

        return Matcher(self.module.GrammarMatcher(compiled), self.shared)


class LLGuidance(Peer):
    def start(self):
        import llguidance
        import llguidance.numpy

        self.module = llguidance
        vocabulary = self.vocabulary

        class Tokens:
            eos_token_id, bos_token_id, special_token_ids = vocabulary.end, None, [vocabulary.end]
            tokens = vocabulary.tokens[:-1] + [b"<|end|>"]

            def __call__(self, text):
                return list(vocabulary.tokens_of(text if isinstance(text, str) else text.decode()))

        self.tokenizer = llguidance.LLTokenizer(llguidance.TokenizerWrapper(Tokens()))
        self.shared = llguidance.numpy.allocate_token_bitmask(1, self.tokenizer.vocab_size)

    def compile(self, schema):
        matcher = self.module.LLMatcher(self.tokenizer, json.dumps({"grammars": [{"json_schema": schema}]}))
        if matcher.is_error():
            raise ValueError(matcher.get_error())
        return matcher

    def matcher(self, compiled):
        fill, shared = self.module.numpy.fill_next_token_bitmask, self.shared

        class Matcher(Bits):
            def __init__(self, matcher):
                self.matcher, self.bits = matcher, shared.view(np.uint32)

            def mask(self):
                fill(self.matcher, shared, 0)

            def advance(self, token):
                self.matcher.consume_token(token)

        return Matcher(compiled.deep_copy())


class Outlines(Peer):
    def start(self):
        import outlines_core
        import outlines_core.json_schema

        self.module = outlines_core
        self.tokens = outlines_core.Vocabulary(self.vocabulary.end, {token: [i] for token, i in self.vocabulary.ids.items()})

    def compile(self, schema):
        return self.module.Index(self.module.json_schema.build_regex_from_schema(json.dumps(schema)), self.tokens)

    def matcher(self, compiled):
        class Matcher(Bits):
            def __init__(self, guide, n_tokens):
                self.guide, self.bits = guide, np.zeros((1, (n_tokens + 31) // 32), np.uint32)

            def mask(self):
                self.guide.write_mask_into(self.bits.ctypes.data, self.bits.size, 4)

            def advance(self, token):
                self.guide.advance(token, return_tokens=False)

        return Matcher(self.module.Guide(compiled), len(self.vocabulary.tokens))


ENGINES = {"fovea": Fovea, "xgrammar": XGrammar, "llguidance": LLGuidance, "outlines_core": Outlines}


def reads_as_valid(schema, data):
    """What jsonschema says: some files' own word is another validator's, or heeds formats."""
    kind = jsonschema.validators.validator_for(schema, jsonschema.Draft202012Validator)
    try:
        return kind(schema).is_valid(data)
    except Exception:  # a $ref that nobody has, or a pattern that Python does not read
        return None


def why_not(schema, text):
    """What jsonschema says against an answer, if it reads the schema."""
    try:
        return schema_walks.validates(schema_walks.validator_of(schema), text)
    except Exception:
        return None


class Counts:
    def __init__(self):
        self.n = self.refused = self.fit = self.fit_taken = self.unfit = self.unfit_taken = self.answers = self.invalid = 0
        self.compiled, self.masks = [], []

    def row(self, name):
        at = lambda values, share: np.quantile(values, share) if values else float("nan")  # noqa: E731
        return (f"| {name} | {100 * (self.n - self.refused) / self.n:.1f} % | {self.fit_taken} of {self.fit} | "
                f"{self.unfit_taken} of {self.unfit} | {self.invalid} of {self.answers} | "
                f"{at(self.compiled, .5):.1f}, {at(self.compiled, .99):.0f}, "
                f"{at(self.compiled, 1):.0f} | {at(self.masks, .5):.1f}, {at(self.masks, .99):.0f}, {at(self.masks, 1):.0f} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("answers")
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--engines", default="fovea")
    parser.add_argument("--walks", type=int, default=0)
    parser.add_argument("--show", type=pathlib.Path)
    options = parser.parse_args()
    vocabulary = Vocabulary(options.answers)
    engines = {name: ENGINES[name](options.answers, vocabulary) for name in options.engines.split(",")}
    counts = {name: Counts() for name in engines}
    faults = []
    paths = sorted(options.folder.rglob("*.json"))[:: options.every]
    for n, path in enumerate(paths):
        if n % 100 == 0:
            print(f"\r{n} of {len(paths)} schemas", end="", file=sys.stderr)
        group = json.loads(path.read_text(encoding="utf-8"))
        schema = group["schema"] if "tests" in group else group
        tests = group["tests"] if schema is not group else []
        tests = [(json.dumps(test["data"], ensure_ascii=False), test) for test in tests]
        for name, engine in engines.items():
            count = counts[name]
            result = engine.answer(schema, [text for text, _ in tests], options.walks)
            count.n += 1
            count.compiled.append(result["compiled"])
            if "refused" in result:
                count.refused += 1
                faults.append(f"{name}\trefused\t{path.stem}\t{result['refused'][:200]}")
                continue
            count.masks += result["masks"]
            for (text, test), taken in zip(tests, result["taken"], strict=True):
                kind = "fit" if test["valid"] else "unfit"
                setattr(count, kind, getattr(count, kind) + 1)
                setattr(count, kind + "_taken", getattr(count, kind + "_taken") + (taken is True))
                if (taken is True) != test["valid"]:
                    said = {True: "valid", False: "invalid", None: "?"}[reads_as_valid(schema, test["data"])]
                    faults.append(f"{name}\t{kind}, taken: {taken}; jsonschema: {said}\t{path.stem}\t{text}")
            for text in dict.fromkeys(result["answers"]):
                why = why_not(schema, text)
                count.answers += 1
                count.invalid += why is not None
                if why:
                    faults.append(f"{name}\tanswer: {why[:200]}\t{path.stem}\t{text}")
    print(f"\n{len(paths)} schemas\n\n| | taken | fitting texts taken | others taken | answers that do not fit | "
          "compiling in ms: half, 99 %, all below | a mask in µs: half, 99 %, all below |\n|---|---|---|---|---|---|---|")
    print("\n".join(count.row(name) for name, count in counts.items()))
    if options.show:
        options.show.write_text("\n".join(faults) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
