#!/usr/bin/env python3
"""Makes tests/golden/numbered_pieces: how Marian's and M2M-100's tokenizers number pieces of SentencePiece models.

Needs torch, transformers and sentencepiece. Each folder is a small random model's, but for the SentencePiece model,
which is spm_unigram.model or spm_bpe.model, and has expected.json: [text, ids] of what transformers' own
class makes of texts, [ids, text] of what it reads from ids, and [options of fovea run, text] of what the model writes
greedily.
"""
import itertools
import json
import pathlib
import random
import sys
import tempfile

import sentencepiece
import torch
from transformers import AutoModelForSeq2SeqLM, M2M100Tokenizer, MarianTokenizer
from transformers.models.m2m_100.tokenization_m2m_100 import FAIRSEQ_LANGUAGE_CODES

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "families"))
import pair_shapes  # noqa: E402

MIXED = json.loads((HERE / "tokenizer_texts.json").read_text())["mixed"]
FRAMES = ["The lamp in the hall is on.", " two  spaces ", "a", "late -- it's 22:45!",
          "Die Straße führt über die Brücke."]
# Those classes take these for tokens wherever they stand; here that is asked for by --special.
SPELLED = ["</s>", "<s>", "<pad>", "<unk>", "__"]


def pieces_of(model):
    read = sentencepiece.SentencePieceProcessor(model_file=str(HERE / model))
    return [read.id_to_piece(i) for i in range(read.get_piece_size())
            if not (read.is_control(i) or read.is_unknown(i) or read.is_unused(i))]


def texts(codes=()):
    plain = [text for text in FRAMES + MIXED[:40] if text.strip() and not any(s in text for s in SPELLED)]
    return plain + [code + between + text for code in codes for between in ("", " ") for text in FRAMES]


def save(name, tokenizer, shape, files, all_texts, asked, rng):
    """asked: [options, keyword arguments of generate, the text, source language]."""
    folder = HERE / "numbered_pieces" / name
    fields, settings = shape
    fields = pair_shapes.sizes(**pair_shapes.SMALL) | fields
    pair_shapes.write_model(name, (fields, settings), folder, 1, torch.bfloat16)
    (folder / "model.safetensors").chmod(0o644)
    for file, value in files.items():
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":")) + "\n"
        (folder / file).write_text(text, encoding="utf-8")
    ids = [tokenizer(text).input_ids for text in all_texts]
    n_ids = len(files["vocab.json"]) - 3
    lists = [own[:-1] for own in ids] + [[rng.randrange(n_ids) for _ in range(9)] for _ in range(20)]
    # decode strips its result; where that takes more than spaces the pieces say another text.
    model = tokenizer.sp_model if hasattr(tokenizer, "sp_model") else tokenizer.spm_source
    spelled = [model.decode(tokenizer.convert_ids_to_tokens(own, skip_special_tokens=True)) for own in lists]
    lists = [own for own, text in zip(lists, spelled) if text.strip(" ") == text.strip()]
    written = []
    torch.set_default_dtype(torch.float32)
    whole = pair_shapes.in_double(AutoModelForSeq2SeqLM.from_pretrained(folder, dtype=torch.float32).eval())
    # By generation_config.json, which asks for four beams, and greedily.
    greedy = dict(num_beams=1, early_stopping=False)
    for (options, more, text, language), how in itertools.product(asked, ({}, greedy)):
        if language:
            tokenizer.src_lang = language
        own = whole.generate(torch.tensor([tokenizer(text).input_ids]), do_sample=False, **how, **more)
        options = options + ["--beams", "1"] if how else options
        written.append([options, tokenizer.decode(own[0], skip_special_tokens=True)])
    (folder / "expected.json").write_text(json.dumps(
        {"ids": list(zip(all_texts, ids)),
         "texts": [[own, tokenizer.decode(own, skip_special_tokens=True)] for own in lists], "written": written},
        separators=(",", ":")) + "\n")


def marian(rng):
    names = pieces_of("spm_unigram.model")
    rng.shuffle(names)
    target = [f"▁ziel{i}" for i in range(12)] + ["lich", "▁Lampe"]
    names = ["</s>", "<unk>"] + names[:90] + target + names[90:] + [">>fra<<", ">>deu<<", "<pad>"]
    vocabulary = {name: i for i, name in enumerate(dict.fromkeys(names))}
    with tempfile.TemporaryDirectory() as work:
        path = pathlib.Path(work) / "vocab.json"
        path.write_text(json.dumps(vocabulary))
        model = str(HERE / "spm_unigram.model")
        tokenizer = MarianTokenizer(source_spm=model, target_spm=model, vocab=str(path))
        pad = vocabulary["<pad>"]
        fields = dict(pair_shapes.MARIAN, vocab_size=len(vocabulary), pad_token_id=pad, decoder_start_token_id=pad,
                      activation_function="swish", scale_embedding=True)
        asked = [[["-p", text], {}, text, None] for text in FRAMES[:2]]
        asked.append([["-p", FRAMES[4], "--to", "fra"], {}, ">>fra<<" + FRAMES[4], None])
        save("marian", tokenizer, (fields, dict(bad_words_ids=[[pad]], no_repeat_ngram_size=2, max_length=24)),
             {"vocab.json": vocabulary}, texts([">>fra<<", ">>deu<<"]), asked, rng)


def m2m_100(rng):
    names = pieces_of("spm_bpe.model")
    rng.shuffle(names)
    vocabulary = {name: i for i, name in enumerate(dict.fromkeys(["<s>", "<pad>", "</s>", "<unk>"] + names))}
    languages = [f"__{code}__" for code in FAIRSEQ_LANGUAGE_CODES["m2m100"]]
    with tempfile.TemporaryDirectory() as work:
        path = pathlib.Path(work) / "vocab.json"
        path.write_text(json.dumps(vocabulary))
        tokenizer = M2M100Tokenizer(vocab_file=str(path), spm_file=str(HERE / "spm_bpe.model"), src_lang="fr",
                                    additional_special_tokens=languages)
        fields = dict(pair_shapes.ROLES, vocab_size=len(vocabulary) + len(languages))
        german = {"forced_bos_token_id": tokenizer.get_lang_id("de")}
        asked = [[["-p", FRAMES[0], "--to", "de"], german, FRAMES[0], "fr"],
                 [["-p", FRAMES[1], "--from", "en", "--to", "__de__"], german, FRAMES[1], "en"],
                 [["-p", FRAMES[2]], {}, FRAMES[2], "fr"]]
        files = {"vocab.json": vocabulary, "special_tokens_map.json": {"additional_special_tokens": languages},
                 "tokenizer_config.json": {"src_lang": "fr", "tokenizer_class": "M2M100Tokenizer"}}
        save("m2m_100", tokenizer, (fields, dict(no_repeat_ngram_size=2, max_length=24)), files, texts(), asked, rng)


if __name__ == "__main__":
    marian(random.Random(1))
    m2m_100(random.Random(2))
