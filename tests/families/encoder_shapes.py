"""Encoders of every family that convert/families reads, as random models: how each family's configuration is drawn. Two
decoders with heads stand for the others: what is behind their rows is the same for all.
encoders.py compares them.

A model's vocabulary is letters, so that a text's tokens are known without a tokenizer. Needs torch and transformers 5.
"""
import random

import torch
import transformers as T

from gte import Config, Gte
from jina_bert import JinaBert
from nomic_moe import NomicMoe

LETTERS = [a for a in "abcdefghijklmnopqrstuvwxyz"]
VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *LETTERS]
CLS, SEP, MASK = 2, 3, 4


class Family:
    """How a random config of a family is drawn, and its classes by head."""

    def __init__(self, config, prefix, heads, draw, types=2):
        self.config, self.prefix, self.heads, self.draw, self.types = config, prefix, heads, draw, types

    def model(self, head, seed):
        rng = random.Random(seed)
        fields = self.draw(rng)
        fields.setdefault("vocab_size", len(VOCABULARY))
        fields["pad_token_id"] = fields.get("pad_token_id", 0)
        if head == "SequenceClassification" and seed % 3 == 1:
            fields["num_labels"] = 1
        elif head in ("SequenceClassification", "TokenClassification"):
            fields["num_labels"] = rng.choice([2, 3, 17])
        config = self.config(**fields)
        config._attn_implementation = "eager"
        name = self.prefix + (head if head in ("Model", "Encoder") else f"For{head}")
        model = getattr(T, name)(config).eval()
        randomize(model, seed)
        return model.float()


def randomize(model, seed):
    """Weights large enough that attention is far from uniform and every bias and norm matters."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "embed_positions" in name:  # which are computed
                continue
            noise = torch.randn(parameter.shape, generator=generator)
            if "norm" in name.lower():
                parameter.copy_(noise * 0.2 + (0.0 if name.endswith("bias") else 1.0))
            elif parameter.dim() == 2:
                parameter.copy_(noise * (1.4 / parameter.shape[1]**0.5))
            else:
                parameter.copy_(noise * 0.3)
    model.tie_weights()


def heads_of(rng, widths=(3, 4, 8, 10, 16)):
    n_heads = rng.choice([1, 2, 3, 4])
    return n_heads, n_heads * rng.choice(widths)


def bert(rng, **more):
    n_heads, width = heads_of(rng)
    return dict(hidden_size=width, num_hidden_layers=rng.choice([1, 2, 3]), num_attention_heads=n_heads,
                intermediate_size=rng.choice([5, 24, 33, 64]), max_position_embeddings=rng.choice([70, 90]),
                layer_norm_eps=rng.choice([1e-12, 1e-5]), hidden_act=rng.choice(["gelu", "gelu_new", "relu"]), **more)


def roberta(rng):
    return bert(rng, type_vocab_size=rng.choice([1, 2]), pad_token_id=1)


def electra(rng):
    return bert(rng, embedding_size=rng.choice([8, 20, 128]))


def ernie(rng):
    return bert(rng, use_task_id=rng.choice([True, False]), task_type_vocab_size=rng.choice([1, 3]))


def rembert(rng):
    return bert(rng, input_embedding_size=rng.choice([8, 20]), output_embedding_size=rng.choice([8, 20]))


def roformer(rng):
    return bert(rng, embedding_size=rng.choice([None, 8, 20])) | even_heads(rng)


def even_heads(rng):
    """Heads that turn in pairs."""
    n_heads, width = heads_of(rng, (4, 8, 10, 16))
    return dict(num_attention_heads=n_heads, hidden_size=width)


def eurobert(rng):
    n_heads, width = heads_of(rng, (4, 8, 10, 16))
    return dict(hidden_size=width, num_hidden_layers=rng.choice([1, 2, 3]), num_attention_heads=n_heads,
                num_key_value_heads=rng.choice([1, n_heads]), intermediate_size=rng.choice([24, 33, 64]),
                max_position_embeddings=90, attention_bias=rng.choice([True, False]), mlp_bias=rng.choice([True, False]),
                classifier_pooling=rng.choice(["bos", "mean"]), bos_token_id=2, eos_token_id=3, mask_token_id=4)


def albert(rng):
    fields = bert(rng, embedding_size=rng.choice([8, 20]), num_hidden_groups=1, inner_group_num=rng.choice([1, 2]))
    fields["num_hidden_groups"] = rng.choice([1, fields["num_hidden_layers"]])
    return fields


def distilbert(rng):
    n_heads, width = heads_of(rng)
    return dict(dim=width, n_layers=rng.choice([1, 2, 3]), n_heads=n_heads, hidden_dim=rng.choice([5, 24, 33]),
                max_position_embeddings=70, activation=rng.choice(["gelu", "relu"]))


def mpnet(rng):
    return bert(rng, pad_token_id=1)  # 32 buckets, whatever the config says


def deberta(rng):
    """Distances beyond the last bucket, buckets by logarithm or one for each distance, and either term alone."""
    fields = bert(rng, relative_attention=True, position_biased_input=rng.choice([True, False]),
                  type_vocab_size=rng.choice([0, 2]), share_att_key=rng.choice([True, True, False]),
                  pos_att_type=rng.choice([["p2c", "c2p"], "c2p|p2c", ["c2p"], ["p2c"]]),
                  norm_rel_ebd=rng.choice(["layer_norm", "none"]), position_buckets=rng.choice([-1, 4, 8, 16, 20]),
                  max_relative_positions=rng.choice([-1, 13, 25]), pooler_hidden_act=rng.choice(["gelu", "tanh"]),
                  legacy=rng.choice([True, False]), attention_probs_dropout_prob=0.0)
    if rng.random() < 0.1:
        fields |= dict(relative_attention=False, pos_att_type=[])
    return fields


def modernbert(rng):
    n_heads, width = heads_of(rng, (4, 8, 10, 16))
    return dict(hidden_size=width, num_hidden_layers=rng.choice([2, 3, 5]), num_attention_heads=n_heads,
                intermediate_size=rng.choice([24, 33, 64]), max_position_embeddings=90,
                local_attention=rng.choice([2, 6, 16]), norm_bias=rng.choice([True, False]),
                attention_bias=rng.choice([True, False]), mlp_bias=rng.choice([True, False]),
                classifier_bias=rng.choice([True, False]), classifier_pooling=rng.choice(["cls", "mean"]),
                bos_token_id=2, eos_token_id=3, cls_token_id=2, sep_token_id=3)


def nomic(rng):
    n_heads, width = heads_of(rng, (4, 8, 10, 16))
    return dict(hidden_size=width, num_hidden_layers=rng.choice([1, 2, 3]), num_attention_heads=n_heads,
                intermediate_size=rng.choice([24, 33, 64]), max_position_embeddings=90)


def t5(rng):
    n_heads = rng.choice([1, 2, 3])
    return dict(d_model=rng.choice([12, 24, 30]), d_kv=rng.choice([4, 8, 10]), d_ff=rng.choice([24, 33, 64]),
                num_layers=rng.choice([1, 2, 3]), num_heads=n_heads, n_positions=90,
                relative_attention_num_buckets=rng.choice([8, 16, 32]),
                relative_attention_max_distance=rng.choice([12, 20, 128]),
                feed_forward_proj=rng.choice(["relu", "gated-gelu", "gated-silu"]))


class JinaFamily(Family):
    def model(self, head, seed):
        rng = random.Random(seed)
        fields = dict(vocab_size=len(VOCABULARY), pad_token_id=0, position_embedding_type="alibi",
                      feed_forward_type=rng.choice(["geglu", "reglu"]), emb_pooler="mean") | self.draw(rng)
        model = JinaBert(T.BertConfig(**fields))
        randomize(model, seed)
        return model


class GteFamily(Family):
    def model(self, head, seed):
        rng = random.Random(seed)
        n_labels = 0 if head == "Model" else 1 if seed % 3 == 1 else rng.choice([2, 3, 17])
        fields = dict(model_type="new", architectures=[f"New{'For' * bool(n_labels)}{head}"], vocab_size=len(VOCABULARY),
                      position_embedding_type="rope") | self.draw(rng)
        if n_labels:
            fields["num_labels"] = n_labels
        model = Gte(Config(**fields), n_labels)
        randomize(model, seed)
        return model


def gte(rng):
    n_heads, width = heads_of(rng, (4, 8, 10, 16))
    return dict(hidden_size=width, num_hidden_layers=rng.choice([1, 2, 3]), num_attention_heads=n_heads,
                intermediate_size=rng.choice([24, 33, 64]), max_position_embeddings=90, type_vocab_size=rng.choice([0, 1, 2]),
                layer_norm_eps=rng.choice([1e-12, 1e-5]), hidden_act=rng.choice(["gelu", "silu"]),
                rope_theta=rng.choice([100.0, 20000.0]), rope_scaling=rng.choice([None, {"type": "ntk", "factor": 2.5}]))


class NomicMoeFamily(Family):
    def model(self, head, seed):
        fields = dict(model_type="nomic_bert", architectures=["NomicBertModel"], vocab_size=len(VOCABULARY))
        model = NomicMoe(Config(**fields, **self.draw(random.Random(seed))))
        randomize(model, seed)
        return model


def nomic_moe(rng):
    n_heads, width = heads_of(rng, (4, 8, 10, 16))
    n_experts = rng.choice([3, 4, 8])
    return dict(n_embd=width, n_layer=rng.choice([2, 3, 4]), n_head=n_heads, n_inner=rng.choice([24, 33, 64]), n_positions=90,
                type_vocab_size=rng.choice([1, 2]), layer_norm_epsilon=rng.choice([1e-12, 1e-5]), activation_function="gelu",
                rotary_emb_base=rng.choice([100.0, 10000.0]), num_experts=n_experts, moe_top_k=rng.choice([1, 2]),
                moe_every_n_layers=rng.choice([2, 3]), qkv_proj_bias=True, mlp_fc1_bias=True, mlp_fc2_bias=True,
                moe_normalize_expert_weights=False)


def jina_v3(rng):
    n_heads, width = heads_of(rng, (4, 8, 10, 16))
    return dict(hidden_size=width, num_hidden_layers=rng.choice([1, 2, 3]), num_attention_heads=n_heads,
                intermediate_size=rng.choice([24, 33, 64]), max_position_embeddings=90, type_vocab_size=rng.choice([1, 2]),
                layer_norm_eps=rng.choice([1e-12, 1e-5]), hidden_act=rng.choice(["gelu", "gelu_new"]))


def mt5(rng):
    return t5(rng) | dict(feed_forward_proj=rng.choice(["gated-gelu", "relu"]))


def qwen3(rng):
    """A decoder, whose last row tells a sequence's class."""
    n_heads = rng.choice([1, 2, 3, 6])
    return dict(hidden_size=rng.choice([12, 30, 42]), num_hidden_layers=rng.choice([1, 2, 3]), num_attention_heads=n_heads,
                num_key_value_heads=rng.choice([1, n_heads]), head_dim=rng.choice([4, 8, 10]),
                intermediate_size=rng.choice([24, 33, 64]), max_position_embeddings=90,
                attention_bias=rng.choice([True, False]), tie_word_embeddings=rng.choice([True, False]))


def gpt2(rng):
    n_heads, width = heads_of(rng)
    return dict(n_embd=width, n_layer=rng.choice([1, 2, 3]), n_head=n_heads, n_inner=rng.choice([5, 24, 33]), n_positions=90)


def gemma_embedding(rng):
    n_heads = rng.choice([1, 2, 3, 6])
    n_layers = rng.choice([1, 2, 7])
    return dict(hidden_size=n_heads * rng.choice([5, 7, 12]), num_hidden_layers=n_layers, num_attention_heads=n_heads,
                num_key_value_heads=rng.choice([1, n_heads]), head_dim=rng.choice([4, 8, 10]),
                intermediate_size=rng.choice([24, 33, 64]), max_position_embeddings=90, query_pre_attn_scalar=rng.choice([5, 8]),
                sliding_window=rng.choice([2, 7, 16, 200]), attention_bias=rng.choice([True, False]),
                use_bidirectional_attention=True,
                rope_parameters={"sliding_attention": {"rope_type": "default", "rope_theta": rng.choice([50.0, 10000.0])},
                                 "full_attention": {"rope_type": "default", "rope_theta": 1e6}},
                bos_token_id=2, eos_token_id=3)


USUAL = ["Model", "SequenceClassification", "TokenClassification", "QuestionAnswering", "MaskedLM"]
FAMILIES = {
    "bert": Family(T.BertConfig, "Bert", USUAL, bert),
    "distilbert": Family(T.DistilBertConfig, "DistilBert", USUAL, distilbert, types=0),
    "roberta": Family(T.RobertaConfig, "Roberta", USUAL, roberta),
    "xlm_roberta": Family(T.XLMRobertaConfig, "XLMRoberta", USUAL, roberta),
    "camembert": Family(T.CamembertConfig, "Camembert", USUAL, roberta),
    "data2vec_text": Family(T.Data2VecTextConfig, "Data2VecText", USUAL, roberta),
    "ernie": Family(T.ErnieConfig, "Ernie", USUAL, ernie),
    "bert_generation": Family(T.BertGenerationConfig, "BertGeneration", ["Encoder"], bert, types=0),
    "rembert": Family(T.RemBertConfig, "RemBert", USUAL[:-1], rembert),
    "roformer": Family(T.RoFormerConfig, "RoFormer", USUAL[:3] + USUAL[4:], roformer),
    "megatron_bert": Family(T.MegatronBertConfig, "MegatronBert", USUAL, bert),
    "xlm_roberta_xl": Family(T.XLMRobertaXLConfig, "XLMRobertaXL", USUAL, roberta),
    "roberta_prelayernorm": Family(T.RobertaPreLayerNormConfig, "RobertaPreLayerNorm", USUAL, roberta),
    "electra": Family(T.ElectraConfig, "Electra", USUAL, electra),
    "albert": Family(T.AlbertConfig, "Albert", USUAL, albert),
    "mpnet": Family(T.MPNetConfig, "MPNet", USUAL, mpnet, types=0),
    "deberta_v2": Family(T.DebertaV2Config, "DebertaV2", USUAL, deberta),
    "modernbert": Family(T.ModernBertConfig, "ModernBert", USUAL, modernbert, types=0),
    "eurobert": Family(T.EuroBertConfig, "EuroBert", USUAL[:3], eurobert, types=0),
    "nomic_bert": Family(T.NomicBertConfig, "NomicBert",
                         ["Model", "SequenceClassification", "TokenClassification", "MaskedLM"], nomic),
    "t5": Family(T.T5Config, "T5Encoder", ["Model"], t5, types=0),
    "mt5": Family(T.MT5Config, "MT5Encoder", ["Model"], mt5, types=0),
    "qwen3": Family(T.Qwen3Config, "Qwen3", ["SequenceClassification", "TokenClassification"], qwen3, types=0),
    "llama": Family(T.LlamaConfig, "Llama", ["Model"], qwen3, types=0),
    "gpt2": Family(T.GPT2Config, "GPT2", ["SequenceClassification", "TokenClassification"], gpt2, types=0),
    "jina_bert": JinaFamily(None, "", ["Model"], bert),
    "gte": GteFamily(None, "", ["Model", "SequenceClassification"], gte),
    "nomic_moe": NomicMoeFamily(None, "", ["Model"], nomic_moe),
    "jina_v3": Family(T.JinaEmbeddingsV3Config, "JinaEmbeddingsV3", USUAL, jina_v3),
    "gemma_embedding": Family(T.Gemma3TextConfig, "Gemma3Text", ["Model"], gemma_embedding, types=0),
}
