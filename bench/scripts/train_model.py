#!/usr/bin/env python3
"""Trains a small language model on a text, for bench/scripts/quality.py: what fewer bits cost is a question about trained weights.

Llama-shaped, 9.9 million weights: 9 layers of 256 columns, feed-forward of 1,024, 8 heads of 32 that share 4 of keys and
values, byte-level BPE of 4,096 tokens, whose embedding is the output head too. Rows of 256 and 1,024 columns hold whole
super-blocks of ggml's types. The text is cut into blocks of some 8 kilobytes; of each 20, one is held out to judge by
and one to calibrate by.

Writes an ordinary Hugging Face folder, with held.txt, calibrate.txt and train.json (losses, settings) in it. How many steps
fit into the minutes depends on the machine.
Needs torch, transformers and tokenizers. Any text of a few megabytes will do; figures in docs/results.md are of the King
James Bible, which is in the public domain (Debian: bible-kjv; `bible -l 2000 'gen1:1-rev22:21' | sed 's/^ *//'`).

    bench/scripts/train_model.py TEXT -o FOLDER [--minutes 40] [--threads 2] [--seed 1] [--bfloat16]
"""
import argparse
import contextlib
import json
import math
import pathlib
import time

import tokenizers
import torch
import transformers

VOCABULARY, POSITIONS, BATCH = 4096, 256, 16
LEARNING_RATE, WARM_UP, WEIGHT_DECAY = 2e-3, 0.03, 0.1
BLOCK_CHARACTERS, BLOCKS, HELD, CALIBRATING = 8192, 20, 7, 13
END = "<|endoftext|>"


def parts(text):
    """The text's blocks of whole lines: to train on, to judge by, to calibrate by."""
    blocks, block = [], ""
    for line in text.splitlines(keepends=True):
        block += line
        if len(block) >= BLOCK_CHARACTERS:
            blocks.append(block)
            block = ""
    blocks.append(block)
    chosen = {HELD: [], CALIBRATING: []}
    rest = []
    for number, block in enumerate(blocks):
        chosen.get(number % BLOCKS, rest).append(block)
    return rest, chosen[HELD], chosen[CALIBRATING]


def make_tokenizer(blocks):
    made = tokenizers.Tokenizer(tokenizers.models.BPE())
    made.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = tokenizers.decoders.ByteLevel()
    made.train_from_iterator(blocks, tokenizers.trainers.BpeTrainer(
        vocab_size=VOCABULARY, special_tokens=[END], show_progress=False,
        initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet()))
    return transformers.PreTrainedTokenizerFast(tokenizer_object=made, bos_token=END, eos_token=END)


def make_model():
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(
        vocab_size=VOCABULARY, hidden_size=256, intermediate_size=1024, num_hidden_layers=9, num_attention_heads=8,
        num_key_value_heads=4, head_dim=32, max_position_embeddings=POSITIONS, tie_word_embeddings=True, rms_norm_eps=1e-5,
        bos_token_id=0, eos_token_id=0))


def token_loss(model, windows):
    logits = model(input_ids=windows[:, :-1]).logits.float()
    return torch.nn.functional.cross_entropy(logits.flatten(0, 1), windows[:, 1:].flatten())


def windows_of(tokens, starts):
    return torch.stack([tokens[start:start + POSITIONS + 1] for start in starts])


@torch.no_grad()
def held_loss(model, tokens):
    starts = range(0, min(len(tokens) - POSITIONS - 1, 128 * POSITIONS), POSITIONS)
    batches = [windows_of(tokens, starts[at:at + BATCH]) for at in range(0, len(starts), BATCH)]
    return sum(token_loss(model, batch).item() * len(batch) for batch in batches) / len(starts)


def train(model, tokens, held, minutes, precision):
    """Steps until the time is used; the learning rate follows a cosine over that time."""
    matrices = [p for p in model.parameters() if p.dim() > 1]
    gains = [p for p in model.parameters() if p.dim() == 1]
    optimizer = torch.optim.AdamW([{"params": matrices, "weight_decay": WEIGHT_DECAY},
                                   {"params": gains, "weight_decay": 0.0}], betas=(0.9, 0.95))
    began, steps, losses = time.monotonic(), 0, []
    while (used := (time.monotonic() - began) / (60 * minutes)) < 1:
        rate = LEARNING_RATE * min(used / WARM_UP, 0.5 * (1 + math.cos(math.pi * used)))
        for group in optimizer.param_groups:
            group["lr"] = rate
        with precision:
            loss = token_loss(model, windows_of(tokens, torch.randint(len(tokens) - POSITIONS, (BATCH,))))
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        steps += 1
        if steps % 50 == 0:
            losses.append({"step": steps, "train": round(loss.item(), 4), "held": round(held_loss(model, held), 4)})
            print(f"{100 * used:3.0f} %  step {steps}  loss {losses[-1]['train']:.3f}  held out {losses[-1]['held']:.3f}",
                  flush=True)
    return {"steps": steps, "tokens": steps * BATCH * POSITIONS, "held": held_loss(model, held), "losses": losses}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("text", type=pathlib.Path)
    parser.add_argument("-o", "--out", type=pathlib.Path, required=True)
    parser.add_argument("--minutes", type=float, default=40)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--bfloat16", action="store_true", help="multiply in bfloat16, faster where the CPU does")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(options.seed)

    try:
        text = options.text.read_text(encoding="utf-8")
        options.out.mkdir(parents=True, exist_ok=True)  # now, not after the training
    except (OSError, UnicodeDecodeError) as failure:
        raise SystemExit(f"{options.text} to {options.out}: {failure}") from None
    if len(text) < 2 * BLOCKS * BLOCK_CHARACTERS:
        raise SystemExit(f"{options.text}: expected {2 * BLOCKS * BLOCK_CHARACTERS:,} characters or more, got {len(text):,}")
    blocks, held, calibrating = parts(text)
    if not calibrating:
        raise SystemExit(f"{options.text}: expected lines of at most {BLOCK_CHARACTERS:,} characters, got longer ones")
    tokenizer, model = make_tokenizer(blocks), make_model()
    tokens, held_tokens = (torch.tensor(tokenizer("".join(text))["input_ids"]) for text in (blocks, held))
    print(f"{sum(p.numel() for p in model.parameters()):,} weights, {len(tokens):,} tokens to train on", flush=True)
    precision = torch.autocast("cpu", dtype=torch.bfloat16) if options.bfloat16 else contextlib.nullcontext()
    report = train(model, tokens, held_tokens, options.minutes, precision)

    model.save_pretrained(options.out)
    tokenizer.save_pretrained(options.out)
    (options.out / "held.txt").write_text("".join(held), encoding="utf-8")
    (options.out / "calibrate.txt").write_text("".join(calibrating), encoding="utf-8")
    report |= {"minutes": options.minutes, "seed": options.seed, "threads": options.threads, "bfloat16": options.bfloat16}
    (options.out / "train.json").write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
