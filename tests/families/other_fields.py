"""Changes of the fields of what is no plain decoder, for fields.py: encoders, what writes another text, sentence-transformers'
files, adapters, a decoder's generation_config.json, Whisper's folders. CHANGES[kind] yields (label, path, value, what compares it) for the rest of a name.
"""
import json
import pathlib
import shutil
import subprocess
import tempfile

import numpy
import torch
import transformers as T

import encoder_shapes
import encoders
import gguf_fields
import gguf_sampling
import gguf_shapes
import pair_shapes
import shapes
import speech_fields
import tokenizer_fields
from changing import COMMON, TEXTS, bounded, changes_of, each_change, judge

N_IDS = 40
WORDS = [*TEXTS, "tanh", "relative_key", "mean", "cls", "layer_norm"]
FOREIGN_TO_ENCODERS = {
    "position_embedding_type": "relative_key_query", "is_decoder": True, "activation_function": "relu", "activation": "relu",
    "layer_norm_eps": 0.1, "layer_norm_epsilon": 0.1, "norm_eps": 0.1, "rms_norm_eps": 0.1, "attention_bias": True,
    "mlp_bias": True, "rope_theta": 50.0, "rotary_value": True, "sliding_window": 3, "local_attention": 4, "embedding_size": 8,
    "num_key_value_heads": 1, "classifier_pooling": "mean", "summary_type": "mean", "pooler_hidden_act": "relu",
    "use_task_id": True, "relative_attention": True, "position_buckets": 4, "use_bidirectional_attention": True,
    "scale_embedding": True, "head_dim": 6, "tie_word_embeddings": False, "is_causal": True, "add_cross_attention": True,
    "num_hidden_groups": 2, "inner_group_num": 2, "type_vocab_size": 3, "pad_token_id": 3, "padding_idx": 3}
FOREIGN_TO_PAIRS = {
    "activation_function": "silu", "normalize_before": False, "normalize_embedding": False, "add_final_layer_norm": True,
    "scale_embedding": True, "static_position_embeddings": True, "tie_encoder_decoder": True, "relative_attention_num_buckets": 8,
    "layer_norm_epsilon": 0.1, "feed_forward_proj": "gated-gelu", "share_encoder_decoder_embeddings": False,
    "tie_word_embeddings": False, "decoder_vocab_size": 20, "num_hidden_layers": 1, "extra_pos_embeddings": 0, "rope_theta": 50.0}
GENERATION = {
    "num_beams": 1, "do_sample": False, "early_stopping": False, "repetition_penalty": 1.7, "no_repeat_ngram_size": 1,
    "encoder_no_repeat_ngram_size": 1, "min_length": 12, "min_new_tokens": 8, "max_new_tokens": 5, "max_length": 6,
    "suppress_tokens": [9], "begin_suppress_tokens": [9], "bad_words_ids": [[9], [3, 9]], "forced_bos_token_id": 5,
    "forced_eos_token_id": 1, "decoder_start_token_id": 3, "eos_token_id": [2, 9], "sequence_bias": [[[9], -5.0]],
    "exponential_decay_length_penalty": [2, 1.5], "remove_invalid_values": True, "renormalize_logits": True, "top_k": 3,
    "length_penalty": 0.1, "diversity_penalty": 0.0, "encoder_repetition_penalty": 1.5, "guidance_scale": 1.5, "temperature": 0.3}
SAMPLING = {"do_sample": True, "temperature": 0.6, "top_k": 9, "top_p": 0.9, "min_p": 0.02, "typical_p": 0.97,
            "repetition_penalty": 1.3}
FOREIGN_TO_SAMPLING = {name: value for name, value in GENERATION.items() if name not in ("max_new_tokens", "max_length", "eos_token_id")} | {
    "num_beams": 2, "epsilon_cutoff": 0.02, "eta_cutoff": 0.05, "top_h": 0.3, "min_length": 60, "token_healing": True,
    "encoder_no_repeat_ngram_size": 2, "no_repeat_ngram_size": 2, "penalty_alpha": 0.6, "dola_layers": "high",
    "forced_bos_token_id": 5, "watermarking_config": {"greenlist_ratio": 0.25, "bias": 2.0}, "force_words_ids": [[9]],
    "exponential_decay_length_penalty": [0, 1.5], "constraints": [], "prompt_lookup_num_tokens": 2}
FILES = ["modules.json", "1_Pooling/config.json", "2_Dense/config.json", "sentence_bert_config.json",
         "config_sentence_transformers.json", "tokenizer_config.json"]
FOREIGN_TO_FILES = {
    "1_Pooling/config.json": {f"pooling_mode_{how}": True for how in (
        "cls_token", "mean_tokens", "max_tokens", "mean_sqrt_len_tokens", "weightedmean_tokens", "lasttoken")} | {
        "pooling_mode": "max", "include_prompt": False, "word_embedding_dimension": 5},
    "sentence_bert_config.json": {"max_seq_length": 6, "do_lower_case": True, "model_args": {}, "config_args": {},
                                  "transformer_task": "fill-mask", "modality_config": {}, "module_output_name": "x"},
    "config_sentence_transformers.json": {"prompts": {"query": "a b ", "": "c "}, "default_prompt_name": "query",
                                          "truncate_dim": 3, "similarity_fn_name": "dot", "model_type": "SparseEncoder"},
    "tokenizer_config.json": {"model_max_length": 7, "do_lower_case": False, "truncation_side": "left", "padding_side": "left",
                              "add_special_tokens": False, "strip_accents": False, "tokenize_chinese_chars": False,
                              "cls_token": "a", "sep_token": "b", "unk_token": "c", "max_length": 6, "pad_token": "d",
                              "clean_up_tokenization_spaces": True},
    "2_Dense/config.json": {"activation_function": "torch.nn.modules.activation.ReLU", "bias": False, "in_features": 3,
                            "module_input_name": "token_embeddings", "module_output_name": "x"}, "modules.json": {}}
# PEFT writes what it has chosen; where nothing is said, Fovea takes the modules that the file has.
UNSAID, UNSAID_BY_NULL = (("target_modules",), ...), (("target_modules",), None)
SENTENCES = ["a b c d e f g h i j k l m n o p q r s t", "A b", "z é x [SEP] y", "q [MASK] r", "ab"]
FOREIGN_TO_ADAPTERS = {
    "alpha_pattern": {"q_proj": 7}, "rank_pattern": {"q_proj": 1}, "modules_to_save": ["lm_head"], "exclude_modules": ["q_proj"],
    "layers_to_transform": [0], "layers_pattern": "layers", "use_rslora": True, "use_dora": True, "lora_bias": True,
    "fan_in_fan_out": True, "bias": "all", "peft_type": "IA3", "layer_replication": [[0, 1], [0, 2]], "use_qalora": True,
    "trainable_token_indices": [1], "target_parameters": ["x"], "megatron_config": {"a": 1}, "corda_config": {"a": 1},
    "eva_config": {"a": 1}, "loftq_config": {"a": 1}, "runtime_config": {"a": 1}, "init_lora_weights": "pissa",
    "ensure_weight_tying": True, "alora_invocation_tokens": [1], "arrow_config": {"a": 1}, "r": 1, "lora_alpha": 9,
    "inference_mode": False, "target_modules": "all-linear", "task_type": "SEQ_CLS", "revision": "x"}


def run(fovea, *arguments):
    return subprocess.run([fovea, *map(str, arguments)], check=True, capture_output=True, text=True).stdout


def computed(expect):
    """What `expect` returns, None where transformers refuses in one of its many ways."""
    try:
        made = expect()
    except Exception:
        return None
    return made if made is not None and len(made) and numpy.isfinite(made).all() and numpy.any(made) else None


def of_file(written, by_default, foreign, skip=COMMON):
    everything = {**{name: value for name, value in by_default.items() if name not in written}, **written}
    yield from (((name,), value) for name, value in foreign.items() if name not in everything or everything[name] != value)
    yield from changes_of(everything, texts=WORDS, skip=skip)


def encoder_changes(name):
    """Of a family: its bare model, and one with a head of classes."""
    family = encoder_shapes.FAMILIES[name]
    if family.config is None:  # no class of transformers'
        return
    for head in [head for head in family.heads if head in ("Model", "Encoder", "SequenceClassification")]:
        model = family.model(head, seed=3)
        written = json.loads(model.config.to_json_string()) | {"architectures": [type(model).__name__]}
        changes = list(of_file(written, family.config().to_dict(), FOREIGN_TO_ENCODERS))
        if head == "SequenceClassification":
            changes += [(("id2label",), ...), (("id2label",), None), (("num_labels",), 4), (("problem_type",), "regression")]
        yield from each_change(head, written, changes,
                               lambda fovea, fields, work, model=model: compare_encoder(fovea, fields, type(model), work))


def compare_encoder(fovea, fields, of_class, work):
    folder, ids = work / "model", [encoder_shapes.MASK + 1 + 7 * i % len(encoder_shapes.LETTERS) for i in range(N_IDS)]

    def expect():
        folder.mkdir()
        (folder / "config.json").write_text(json.dumps(fields))
        config = T.AutoConfig.from_pretrained(folder)
        config._attn_implementation = "eager"
        with bounded():
            model = of_class(config).eval()
        encoder_shapes.randomize(model, 3)
        with torch.no_grad():
            out = model(torch.tensor([ids]))
        model.save_pretrained(folder)
        (folder / "config.json").write_text(json.dumps(fields))
        (folder / "generation_config.json").unlink(missing_ok=True)
        return (out.logits[0] if hasattr(out, "logits") else out.last_hidden_state[0]).numpy()

    expected = computed(expect)
    if expected is None:
        return "skipped"

    def got():
        run(fovea, "convert", folder, "-o", work / "m.fovea")
        head = ["--head"] if "Classification" in of_class.__name__ else []
        run(fovea, "encode", work / "m.fovea", "--tokens", ",".join(map(str, ids)), *head, "-o", work / "o.npy")
        return numpy.load(work / "o.npy").reshape(expected.shape if head else (len(ids), -1))

    return judge(expected, got, work)


def pair_changes(name):
    """What a model writes of a text, whose first shape's files are changed; settings of generation beside it."""
    fields, settings = pair_shapes.SHAPES[name][0]
    with tempfile.TemporaryDirectory() as work:
        pair_shapes.write_model(name, (fields, settings), pathlib.Path(work) / "model", seed=3)
        config, generation = (json.loads((pathlib.Path(work) / "model" / file).read_text())
                              for file in ("config.json", "generation_config.json"))
    yield from each_change("config", config, of_file(config, T.AutoConfig.for_model(name).to_dict(), FOREIGN_TO_PAIRS),
                           lambda fovea, fields, work: compare_pair(fovea, fields, generation, work))
    yield from each_change("generation", generation, of_file(generation, {}, GENERATION),
                           lambda fovea, fields, work: compare_pair(fovea, config, fields, work))


def compare_pair(fovea, fields, generation, work):
    folder = work / "model"
    is_bounded = any(generation.get(name) is not None for name in ("max_length", "max_new_tokens"))

    def write():
        (folder / "config.json").write_text(json.dumps(fields))
        (folder / "generation_config.json").write_text(json.dumps(generation))

    def expect():
        folder.mkdir()
        write()
        config = T.AutoConfig.from_pretrained(folder)
        config._attn_implementation = "eager"
        with bounded():
            model = T.AutoModelForSeq2SeqLM.from_config(config).eval()
        pair_shapes.randomize(model, 3)
        model.save_pretrained(folder)
        write()
        model.generation_config = T.GenerationConfig.from_pretrained(folder)
        source.extend(pair_shapes.source_ids(config))
        written = model.generate(torch.tensor([source]), num_beams=1, do_sample=False, early_stopping=False,
                                 **({} if is_bounded else {"max_length": 30}))[0].tolist()
        n_positions = getattr(config, "max_position_embeddings", getattr(config, "n_positions", len(written)))
        ends = len(written) > n_positions  # a file's positions do
        if ends or config.model_type == "m2m_100" and config.pad_token_id in written + source:  # it has no position of its own
            return None
        return numpy.array([1, *pair_shapes.text_of(written, generation)])

    source = []
    expected = computed(expect)
    if expected is None:
        return "skipped"

    def got():
        run(fovea, "convert", folder, "-o", work / "m.fovea")
        n_others = 1 + sum(generation.get(name) is not None for name in ("forced_bos_token_id", "forced_eos_token_id"))
        more = [] if is_bounded else ["-n", str(30 - n_others)]
        answer = run(fovea, "run", work / "m.fovea", "--tokens", ",".join(map(str, source)), "--beams", "1", "--json", *more)
        return numpy.array([1, *json.loads(answer)["tokens"]])

    return judge(expected, got, work)


def sentence_changes(_):
    """The files of two folders: as sentence-transformers writes them now, and with a mode of pooling as it did before."""
    with tempfile.TemporaryDirectory() as scratch:
        base = pathlib.Path(scratch) / "base"
        write_sentence_model(base)
        for old in (False, True):
            files = {name: json.loads((base / name).read_text()) for name in FILES if (base / name).exists()}
            files["modules.json"] = {str(i): item for i, item in enumerate(files["modules.json"])}
            if old:
                files["1_Pooling/config.json"] = {"word_embedding_dimension": 12, "pooling_mode_cls_token": False,
                                                  "pooling_mode_mean_tokens": True, "pooling_mode_max_tokens": False}
            for name, written in files.items():
                changes = of_file(written, {}, FOREIGN_TO_FILES[name], skip={"model_type"} if name == "modules.json" else ())
                yield from each_change(f"{name}{', old' * old}", written, changes, lambda fovea, fields, work, name=name: (
                    compare_sentences(fovea, base, files | {name: fields}, work)))


def write_sentence_model(folder):
    from sentence_transformers import SentenceTransformer
    from sentence_transformers import models as modules
    with tempfile.TemporaryDirectory() as scratch:
        encoder = pathlib.Path(scratch) / "encoder"
        model = T.BertModel(T.BertConfig(hidden_size=12, num_attention_heads=2, num_hidden_layers=2, intermediate_size=20,
                                         vocab_size=len(encoder_shapes.VOCABULARY), max_position_embeddings=16)).eval()
        encoder_shapes.randomize(model, 5)
        encoders.save(model, encoder)
        T.BertTokenizer(vocab={token: i for i, token in enumerate(encoder_shapes.VOCABULARY)}).save_pretrained(encoder)
        parts = [modules.Transformer(str(encoder)), modules.Pooling(12, pooling_mode="mean"),
                 modules.Dense(12, 9, activation_function=torch.nn.Tanh()), modules.Normalize()]
        SentenceTransformer(modules=parts, device="cpu").save(str(folder))


def compare_sentences(fovea, base, files, work):
    from sentence_transformers import SentenceTransformer
    folder = work / "model"
    shutil.copytree(base, folder)
    for name, fields in files.items():
        (folder / name).write_text(json.dumps(list(fields.values()) if name == "modules.json" else fields))
    expected = computed(lambda: SentenceTransformer(str(folder), device="cpu").encode(SENTENCES, batch_size=1))
    if expected is None:
        return "skipped"

    def got():
        run(fovea, "convert", folder, "-o", work / "m.fovea")
        (work / "texts").write_text("\n".join(SENTENCES) + "\n")
        run(fovea, "encode", work / "m.fovea", "--texts", work / "texts", "--special", "-o", work / "o.npy")
        return numpy.load(work / "o.npy")

    return judge(expected, got, work)


def adapter_changes(_):
    """An adapter of a llama, merged and beside the model."""
    from peft import LoraConfig, get_peft_model
    with tempfile.TemporaryDirectory() as scratch:
        base, saved = pathlib.Path(scratch) / "base", pathlib.Path(scratch) / "adapter"
        shapes.write_model("llama", shapes.SHAPES["llama"][0], base, seed=7)
        model = get_peft_model(T.AutoModelForCausalLM.from_pretrained(base),
                               LoraConfig(target_modules=["q_proj", "down_proj"], r=2, lora_alpha=3))
        generator = torch.Generator().manual_seed(1)
        for name, parameter in model.named_parameters():
            if ".lora_" in name:
                parameter.data = 0.3 * torch.randn(parameter.shape, generator=generator)
        model.save_pretrained(saved)
        written = json.loads((saved / "adapter_config.json").read_text())
        changes = [change for change in of_file(written, {}, FOREIGN_TO_ADAPTERS, skip={"base_model_name_or_path"})
                   if change not in (UNSAID, UNSAID_BY_NULL)]
        for beside in (False, True):
            yield from each_change("beside" if beside else "merged", written, changes,
                                   lambda fovea, fields, work, beside=beside: (
                                       compare_adapter(fovea, base, saved, fields, beside, work)))


def compare_adapter(fovea, base, saved, fields, beside, work):
    from peft import PeftModel
    adapter = work / "adapter"
    shutil.copytree(saved, adapter)
    (adapter / "adapter_config.json").write_text(json.dumps(fields))
    ids = [(7 * i + 3) % 20 for i in range(20)]

    def expect():
        adapted = PeftModel.from_pretrained(T.AutoModelForCausalLM.from_pretrained(base), adapter).eval()
        with torch.no_grad():
            return adapted(torch.tensor([ids]), use_cache=False).logits[0].numpy()

    expected = computed(expect)
    if expected is None:
        return "skipped"

    def got():
        more = []
        if beside:
            run(fovea, "convert", base, "-o", work / "m.fovea", "--type", "f32")
            run(fovea, "convert", adapter, "--base", base, "-o", work / "a.fovea")
            more = ["--lora", work / "a.fovea"]
        else:
            run(fovea, "convert", base, "-o", work / "m.fovea", "--type", "f32", "--lora", adapter)
        run(fovea, "logits", work / "m.fovea", "--tokens", ",".join(map(str, ids)), "-o", work / "o.npy", *more)
        return numpy.load(work / "o.npy")

    return judge(expected, got, work)


def sampling_changes(_):
    """What generation_config.json says of a decoder's next token."""
    with tempfile.TemporaryDirectory() as scratch:
        base = pathlib.Path(scratch) / "base"
        shapes.write_model("llama", shapes.SHAPES["llama"][0], base, seed=7)
        changes = of_file(SAMPLING, {}, FOREIGN_TO_SAMPLING)
        yield from each_change("", SAMPLING, changes, lambda fovea, fields, work: compare_sampling(fovea, base, fields, work))


def next_token(model, settings):
    """The probability of each token behind some that come again; of one alone where nothing is drawn."""
    ids = torch.tensor([[(5 * i + 3) % 11 for i in range(20)]])
    model.generation_config = T.GenerationConfig(**settings, eos_token_id=2, pad_token_id=0)
    torch.manual_seed(1)
    made = model.generate(ids, max_new_tokens=1, return_dict_in_generate=True, output_scores=True)
    scores = made.scores[0][0]
    is_drawn = settings.get("do_sample")
    return (torch.softmax(scores, -1) if is_drawn else scores == scores.max()).double().numpy()


def compare_sampling(fovea, base, fields, work):
    """What was kept in the file does the same in the place of the settings, or a note names what is not heeded."""
    folder = work / "model"
    shutil.copytree(base, folder)
    (folder / "generation_config.json").write_text(json.dumps(fields))
    model = T.AutoModelForCausalLM.from_pretrained(base).eval()
    expected = computed(lambda: next_token(model, fields))
    if expected is None:
        return "skipped"
    made = subprocess.run([fovea, "convert", folder, "-o", work / "m.fovea"], capture_output=True, text=True)
    names = [name for name in fields if f"{name}: chats don't heed it" in made.stderr]
    if names:
        return "refused: " + ", ".join(names)

    def got():
        made.check_returncode()
        kept = json.loads(run(fovea, "inspect", work / "m.fovea", "--json")).get("sampling", {})
        penalty = {"repetition_penalty": kept.pop("repeat_penalty")} if kept.pop("repeat_last_n", None) else {}
        return next_token(model, {"do_sample": "temperature" in kept, **kept, **penalty})

    return judge(expected, got, work)


CHANGES = {"encoder": encoder_changes, "pair": pair_changes, "sentence": sentence_changes, "adapter": adapter_changes,
           "sampling": sampling_changes, "speech": speech_fields.changes, "tokenizer": tokenizer_fields.changes,
           "gguf": gguf_fields.changes, "gguf-sampling": gguf_sampling.changes}
NAMES = ["sentence", "adapter", "sampling", "speech", "gguf-sampling", *(f"tokenizer:{name}" for name in tokenizer_fields.FILES),
         *(f"encoder:{name}" for name in encoder_shapes.FAMILIES), *(f"pair:{name}" for name in pair_shapes.SHAPES),
         *(f"gguf:{name}" for name in gguf_shapes.SHAPES)]
