#!/usr/bin/env python3
"""Where in texts the `tokenizers` package finds the tokens of each tokenizer_*.json here: tokenizer_offsets.json.

A token's own space counts: post-processors, which may take it away and add tokens around a text, are left out.

    python3 tests/golden/make_offsets.py          # needs tokenizers
"""

import json
import pathlib

from tokenizers import Tokenizer

HERE = pathlib.Path(__file__).parent
TEXTS = [
    "The lamp's ON, isn't it?  Two  spaces, 1234567 and 3.14!",
    " leading, and at the end \n\n\tx = [0];  ",
    "Die Straße führt über größere Äpfel; naïve café, e\u0301 and e\u0323\u0301x.",
    "快速的棕色狐狸跳过懒狗。 ﬁ…½ Ｆｕｌｌ",
    "👍🏽 👩 done, 한글 कोई भी สวัสดี",
    "a\u200bb\x07c\xa0d \u0130 ΣΑΣ",
]


def main():
    made = {}
    for path in sorted(HERE.glob("tokenizer_*.json")):
        content = json.loads(path.read_text())
        if "model" not in content:
            continue
        content["post_processor"] = None
        tokenizer = Tokenizer.from_str(json.dumps(content))
        found = [tokenizer.encode(text, add_special_tokens=False) for text in TEXTS]
        made[path.stem] = [[list(place) for place in each.offsets] for each in found]
    lines = [f' "{name}": {json.dumps(places, separators=(",", ":"))}' for name, places in made.items()]
    texts = json.dumps(TEXTS, ensure_ascii=True)
    (HERE / "tokenizer_offsets.json").write_text('{"texts": ' + texts + ',\n' + ",\n".join(lines) + "}\n")


if __name__ == "__main__":
    main()
