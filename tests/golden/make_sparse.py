#!/usr/bin/env python3
"""Models of sparse vectors: tests/golden/sparse/splade as sentence-transformers saves one, and sparse/m3 in the layout of bge-m3.

expected.json has a list of texts with their weights by id: of the first what SparseEncoder makes, of the second what the paper
says of its head (Chen et al. 2024, section 3.2: a ReLU of a linear map for each token, the largest for an id), without special tokens.
Needs sentence-transformers, tokenizers, torch and transformers.
"""
import json
import pathlib
import shutil

import torch
from sentence_transformers import SparseEncoder
from sentence_transformers.base.modules import Transformer
from sentence_transformers.sparse_encoder.modules import SpladePooling
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors
from transformers import BertConfig, BertForMaskedLM, BertTokenizer, PreTrainedTokenizerFast, XLMRobertaConfig, XLMRobertaModel

FOLDER = pathlib.Path(__file__).resolve().parent / "sparse"
TEXTS = ["a b c", "k", "the the lamp is on", "z y x w v u t s r q p o n m l k j i h g f e d c b a a b c", "q w e", "a a a ?"]
WORDS = [*"abcdefghijklmnopqrstuvwxyz?", "the", "lamp", "is", "on"]


def randomize(model, seed):
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            noise = torch.randn(parameter.shape, generator=generator)
            parameter.copy_(noise * (1.4 / parameter.shape[1] ** 0.5) if parameter.dim() == 2 else
                            noise * 0.3 + ("LayerNorm.weight" in name))
    return model.eval()


def write(folder, cases):
    lines = ",\n".join(json.dumps(case) for case in cases)
    (folder / "expected.json").write_text(f"[\n{lines}\n]\n")


def splade():
    folder, inner = FOLDER / "splade", FOLDER / "inner"
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]
    config = BertConfig(vocab_size=len(vocabulary), hidden_size=12, num_hidden_layers=2, num_attention_heads=3,
                        intermediate_size=20, max_position_embeddings=24)
    randomize(BertForMaskedLM(config), 3).save_pretrained(inner)
    BertTokenizer(vocab={word: i for i, word in enumerate(vocabulary)}, model_max_length=24).save_pretrained(inner)
    encoder = SparseEncoder(modules=[Transformer(str(inner), transformer_task="fill-mask"), SpladePooling("max")],
                            device="cpu", prompts={"query": "the lamp ", "document": ""})
    encoder.save_pretrained(str(folder), create_model_card=False)
    shutil.rmtree(inner)
    cases = []
    for prompt in (None, "query"):
        for text, row in zip(TEXTS, encoder.encode(TEXTS, prompt_name=prompt, convert_to_sparse_tensor=False)):
            weights = {str(i): weight.item() for i, weight in enumerate(row) if weight > 0}
            cases.append({"text": text, "prompt": prompt or "", "weights": weights})
    write(folder, cases)


def xlm_roberta(vocabulary, **settings):
    """bge-m3's kind of model, and its tokenizer."""
    pieces = [(word if word.startswith("<") else "\u2581" + word, -1.0 - i / 100) for i, word in enumerate(vocabulary)]
    own = Tokenizer(models.Unigram(pieces, unk_id=3, byte_fallback=False))
    own.pre_tokenizer, own.decoder = pre_tokenizers.Metaspace(), decoders.Metaspace()
    own.post_processor = processors.TemplateProcessing(single="<s> $A </s>", special_tokens=[("<s>", 0), ("</s>", 2)])
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=own, bos_token="<s>", cls_token="<s>", eos_token="</s>",
                                        sep_token="</s>", pad_token="<pad>", unk_token="<unk>", mask_token="<mask>",
                                        model_max_length=28)
    model = randomize(XLMRobertaModel(XLMRobertaConfig(
        vocab_size=len(vocabulary), hidden_size=12, num_hidden_layers=2, num_attention_heads=3, intermediate_size=20,
        max_position_embeddings=30, type_vocab_size=1), **settings), 4)
    return model, tokenizer


def m3():
    folder = FOLDER / "m3"
    model, tokenizer = xlm_roberta(["<s>", "<pad>", "</s>", "<unk>", *WORDS, "<mask>"])
    head = randomize(torch.nn.Linear(12, 1), 7)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    torch.save(head.state_dict(), folder / "sparse_linear.pt")
    kinds = [("", "Transformer"), ("1_Pooling", "Pooling"), ("2_Normalize", "Normalize")]
    (folder / "modules.json").write_text(json.dumps([
        {"idx": i, "name": str(i), "path": path, "type": "sentence_transformers.models." + kind}
        for i, (path, kind) in enumerate(kinds)]) + "\n")
    (folder / "1_Pooling").mkdir(exist_ok=True)
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(
        {"word_embedding_dimension": 12, "pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False}) + "\n")
    cases = []
    for text in TEXTS:
        ids = tokenizer(text, truncation=True).input_ids
        with torch.no_grad():
            rows = torch.relu(head(model(torch.tensor([ids])).last_hidden_state[0]))[:, 0].tolist()
        weights = {}
        for token, weight in zip(ids, rows):
            if weight > 0 and token not in tokenizer.all_special_ids:
                weights[str(token)] = max(weight, weights.get(str(token), 0))
        cases.append({"text": text, "prompt": "", "weights": weights})
    write(folder, cases)


if __name__ == "__main__":
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir()
    splade()
    m3()
