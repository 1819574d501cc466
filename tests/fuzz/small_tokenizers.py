"""Small tokenizers, texts for them, and SentencePiece models: seeds of their targets."""
import json

from small_files import GOLDEN, compact, write


def shrunk_tokenizer(path, n_tokens, n_merges):
    """The first tokens that are one character, those a few merges make, and the added ones, under new ids."""
    parts = json.loads(path.read_text())
    model = parts["model"]
    if model["type"] == "BPE":
        model["merges"] = model["merges"][:n_merges]
        words = {word for pair in model["merges"] for word in (*pair, "".join(pair))}
    else:
        words = set(list(model["vocab"])[-n_tokens:])
    kept = [token for token in model["vocab"] if len(token) == 1][:n_tokens]
    kept += [f"<0x{byte:02X}>" for byte in range(0, 256, 16) if f"<0x{byte:02X}>" in model["vocab"]]
    named = {token["content"] for token in parts["added_tokens"]} | {model.get("unk_token")}
    kept = [token for token in model["vocab"] if token in named or token in words or token in kept]
    model["vocab"] = {token: i for i, token in enumerate(kept)}
    last = len(kept)
    for token in parts["added_tokens"]:
        token["id"] = model["vocab"].get(token["content"], last)
        last += token["id"] == last
    ids = {token["content"]: token["id"] for token in parts["added_tokens"]}
    post = parts.get("post_processor") or {}
    for special in post.get("special_tokens", {}).values():
        special["ids"] = [ids[token] for token in special["tokens"]]
    for end in ("sep", "cls"):
        if end in post:
            post[end][1] = ids[post[end][0]]
    return parts


def make_tokenizers():
    for name in ("gpt2", "llama3", "qwen2", "smollm", "roberta", "llama2", "mistral", "metaspace", "gaps", "bert",
                 "bert_accents", "bert_cased"):
        write("tokenizer_json", name, compact(shrunk_tokenizer(GOLDEN / f"tokenizer_{name}.json", 24, 8)))
    texts = json.loads((GOLDEN / "tokenizer_texts.json").read_text())
    lines = sorted({text[:64] for group in texts.values() for text in group if isinstance(text, str)})
    for i, text in enumerate(lines[::max(1, len(lines) // 64)]):
        write("tokenize", f"text{i}", bytes([i * 37 % 256]) + text.encode("utf-8", "surrogatepass"))


def make_sentence_pieces():
    for name in ("bpe", "unigram"):
        write("sentence_piece", name, (GOLDEN / f"spm_{name}.model").read_bytes())
