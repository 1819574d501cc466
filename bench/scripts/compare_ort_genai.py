#!/usr/bin/env python3
"""Speed beside ONNX Runtime GenAI's, on a folder that its model builder made and on the Fovea file of the same weights.

Python package onnxruntime-genai. Prefill and decoding run in alternating pairs with the same number of threads. Ratios are of
the two runs of a pair, above 1 where Fovea is faster. Its arithmetic is what the builder was told: accuracy_level=4 multiplies
integers.

    python -m onnxruntime_genai.models.builder -i FOLDER -o EXPORTED -p int8 -e cpu \\
        --extra_options block_size=32 accuracy_level=4
    bench/scripts/compare_ort_genai.py --model FOLDER --type q8 --peer EXPORTED --threads 2
"""
import json
import os
import time

from compare import compare_folders, refuse

import numpy as np
import onnxruntime_genai


class Peer:
    """A loaded model; each run has a generator, and so a cache, of its own."""

    def __init__(self, options):
        path = os.path.join(options.peer, "genai_config.json")
        if not os.path.isfile(path):
            refuse(f"--peer: expected a folder with genai_config.json, got {options.peer}")
        config = onnxruntime_genai.Config(options.peer)
        config.overlay(json.dumps({"model": {"decoder": {"session_options": {"intra_op_num_threads": options.threads}}}}))
        self.model = onnxruntime_genai.Model(config)

    def tokens_per_second(self, options, phase):
        n_prompt = options.prompt if phase == "prefill" else max(1, options.depth)
        length = n_prompt + options.tokens + 1
        search = onnxruntime_genai.GeneratorParams(self.model)
        search.set_search_options(max_length=length, min_length=length, do_sample=False)
        generator = onnxruntime_genai.Generator(self.model, search)
        prompt = 100 + np.arange(n_prompt, dtype=np.int32) % 1000
        begin, n = time.perf_counter(), n_prompt
        generator.append_tokens(prompt[None])
        generator.generate_next_token()  # chooses from the prompt's logits
        if phase == "decode":
            begin, n = time.perf_counter(), options.tokens
            for _ in range(n):
                generator.generate_next_token()
        return n / (time.perf_counter() - begin)


if __name__ == "__main__":
    compare_folders(__doc__, Peer)
