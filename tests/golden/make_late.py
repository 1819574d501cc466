#!/usr/bin/env python3
"""Models of late interaction, tests/golden/late: native as sentence-transformers' MultiVectorEncoder saves one, pylate and stanford
in the layouts of PyLate and of ColBERT's own checkpoints, m3 in that of bge-m3.

expected.json has the vectors of queries' and documents' tokens, and every document's score for every query: of m3 as the paper
says (Chen et al. 2024, section 3.2: a linear map of each row but the first, divided by its length; the mean over the query's
tokens of the largest product), else by MultiVectorEncoder, which reads all three layouts.
Needs sentence-transformers, tokenizers, torch and transformers.
"""
import json
import pathlib
import shutil
import string

import numpy
import torch
from make_sparse import WORDS, randomize, xlm_roberta
from safetensors.torch import load_file, save_file
from sentence_transformers import MultiVectorEncoder
from sentence_transformers.base.modules import Dense, Normalize, Transformer
from sentence_transformers.multi_vector_encoder.modules import MultiVectorMask
from tokenizers import AddedToken
from transformers import BertConfig, BertModel, BertTokenizer, ModernBertConfig, ModernBertModel

FOLDER = pathlib.Path(__file__).resolve().parent / "late"
QUERIES = ["a b c", "the lamp is on ?", "z y x w v u t s r q p o n m l k j i h g f e d c b a"]
DOCUMENTS = ["the lamp , on .", "a b c !", "k", "q w e r t y u i o p a s d f g h j k l z x c v b n m q w e r t y"]
MARKS = [",", ".", "!"]


def words(*special):
    return [*special, *WORDS, *MARKS]


def rows(vectors):
    return [[[round(float(x), 7) for x in row] for row in one] for one in vectors]


def write(folder, queries, documents, scores):
    expected = {"queries": QUERIES, "documents": DOCUMENTS, "query_vectors": rows(queries),
                "document_vectors": rows(documents), "scores": numpy.asarray(scores).tolist()}
    parts = ",\n".join(f"{json.dumps(key)}: {json.dumps(value)}" for key, value in expected.items())
    (folder / "expected.json").write_text("{" + parts + "}\n")


def write_by_encoder(folder):
    encoder = MultiVectorEncoder(str(folder), device="cpu")
    queries, documents = encoder.encode_query(QUERIES), encoder.encode_document(DOCUMENTS)
    write(folder, queries, documents, encoder.similarity(queries, documents))


def bert(folder, vocabulary, most, marks):
    config = BertConfig(vocab_size=len(vocabulary) + len(marks), hidden_size=12, num_hidden_layers=2, num_attention_heads=3,
                        intermediate_size=20, max_position_embeddings=most)
    model = randomize(BertModel(config, add_pooling_layer=False), 3)
    tokenizer = BertTokenizer(vocab={word: i for i, word in enumerate(vocabulary)}, model_max_length=most)
    return model, tokenizer


def dense(width, seed, **options):
    module = Dense(width, 8, bias=False, activation_function=torch.nn.Identity(), **options)
    randomize(module, seed)
    return module


def native():
    folder, inner = FOLDER / "native", FOLDER / "inner"
    model, tokenizer = bert(folder, words("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"), 24, ("[Q] ", "[D] "))
    tokenizer.add_special_tokens({"additional_special_tokens": [AddedToken(mark, normalized=False, special=True)
                                                                for mark in ("[Q] ", "[D] ")]})
    model.save_pretrained(inner)
    tokenizer.save_pretrained(inner)
    torch.manual_seed(0)  # for a pooler that sentence-transformers adds, and saves
    transformer = Transformer(str(inner), document_length=18, query_expansion={"strategy": "min", "length": 14})
    encoder = MultiVectorEncoder(
        modules=[transformer, dense(12, 5, module_input_name="token_embeddings"), MultiVectorMask(list(string.punctuation)),
                 Normalize(module_input_name="token_embeddings")],
        device="cpu", prompts={"query": "[Q] ", "document": "[D] "}, similarity_fn_name="meanmaxsim")
    encoder.save_pretrained(str(folder), create_model_card=False)
    shutil.rmtree(inner)
    write_by_encoder(folder)


def pylate():
    """As PyLate 1 saves a model: the marks are added tokens, a lower-casing tokenizer would not find them in a text."""
    folder = FOLDER / "pylate"
    vocabulary = words("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
    _, tokenizer = bert(folder, vocabulary, 32, ())
    tokenizer.add_tokens(["[Q] ", "[D] "])
    config = ModernBertConfig(vocab_size=len(vocabulary) + 2, hidden_size=12, num_hidden_layers=3, num_attention_heads=3,
                              intermediate_size=20, max_position_embeddings=32, local_attention=6, global_attn_every_n_layers=2,
                              pad_token_id=0, bos_token_id=2, eos_token_id=3, cls_token_id=2, sep_token_id=3)
    randomize(ModernBertModel(config), 6).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    (folder / "1_Dense").mkdir()
    module = dense(12, 8)
    save_file({"linear.weight": module.linear.weight.data}, folder / "1_Dense/model.safetensors", {"format": "pt"})
    (folder / "1_Dense/config.json").write_text(json.dumps(
        {"in_features": 12, "out_features": 8, "bias": False, "activation_function": "torch.nn.modules.linear.Identity"}) + "\n")
    (folder / "modules.json").write_text(json.dumps([
        {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
        {"idx": 1, "name": "1", "path": "1_Dense", "type": "pylate.models.Dense.Dense"}]) + "\n")
    (folder / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": 11, "do_lower_case": False}) + "\n")
    (folder / "config_sentence_transformers.json").write_text(json.dumps({
        "prompts": {}, "default_prompt_name": None, "similarity_fn_name": "MaxSim", "model_type": "ColBERT",
        "query_prefix": "[Q] ", "document_prefix": "[D] ", "query_length": 12, "document_length": 20,
        "attend_to_expansion_tokens": True, "skiplist_words": MARKS, "do_query_expansion": True}) + "\n")
    write_by_encoder(folder)


def stanford():
    folder = FOLDER / "stanford"
    model, tokenizer = bert(folder, words("[PAD]", "[unused0]", "[unused1]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"), 30, ())
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    state = {f"bert.{name}": tensor for name, tensor in load_file(folder / "model.safetensors").items()}
    save_file(state | {"linear.weight": dense(12, 9).linear.weight.data}, folder / "model.safetensors", {"format": "pt"})
    config = json.loads((folder / "config.json").read_text()) | {"architectures": ["HF_ColBERT"]}
    (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n")
    (folder / "artifact.metadata").write_text(json.dumps({
        "query_token_id": "[unused0]", "doc_token_id": "[unused1]", "query_maxlen": 11, "doc_maxlen": 19, "dim": 8,
        "mask_punctuation": True, "attend_to_mask_tokens": False, "similarity": "cosine"}) + "\n")
    write_by_encoder(folder)


def m3():
    folder = FOLDER / "m3"
    model, tokenizer = xlm_roberta([*words("<s>", "<pad>", "</s>", "<unk>"), "<mask>"], add_pooling_layer=False)
    head = randomize(torch.nn.Linear(12, 12), 7)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    torch.save(head.state_dict(), folder / "colbert_linear.pt")

    def vectors(text):
        ids = tokenizer(text, truncation=True).input_ids
        with torch.no_grad():
            return torch.nn.functional.normalize(head(model(torch.tensor([ids])).last_hidden_state[0, 1:]), dim=-1).numpy()

    queries, documents = ([vectors(text) for text in texts] for texts in (QUERIES, DOCUMENTS))
    write(folder, queries, documents, [[float((q @ d.T).max(1).mean()) for d in documents] for q in queries])


if __name__ == "__main__":
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir()
    for make in (native, pylate, stanford, m3):
        make()
    for path in FOLDER.rglob("model.safetensors"):
        path.chmod(0o644)
