#!/usr/bin/env python3
"""Names of languages as other programs know them: languages.json.

Needs openai-whisper and transformers. `whisper`: every name that OpenAI's program takes, with its code. `nllb`,
`m2m_100`, `mbart`: the codes that transformers' tokenizers have tokens for.
"""
import json
import pathlib

from transformers.models.m2m_100.tokenization_m2m_100 import FAIRSEQ_LANGUAGE_CODES as M2M
from transformers.models.mbart50.tokenization_mbart50 import FAIRSEQ_LANGUAGE_CODES as MBART
from transformers.models.nllb.tokenization_nllb import FAIRSEQ_LANGUAGE_CODES as NLLB
from whisper.tokenizer import LANGUAGES, TO_LANGUAGE_CODE


def main():
    names = {code: code for code in LANGUAGES} | TO_LANGUAGE_CODE
    found = {"whisper": names, "nllb": NLLB, "m2m_100": M2M["m2m100"], "mbart": MBART}
    text = json.dumps(found, indent=None, sort_keys=True).replace("], ", "],\n")
    (pathlib.Path(__file__).resolve().parent / "languages.json").write_text(text + "\n")


if __name__ == "__main__":
    main()
