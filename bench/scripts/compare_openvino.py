#!/usr/bin/env python3
"""Speed beside OpenVINO's, on a folder that optimum-intel exported and on the Fovea file of the same weights.

Python package openvino. The exported model keeps its state in itself and computes logits for every position of a prompt;
as OpenVINO's own pipelines do, the output layer is given the last position alone here. Prefill and decoding run in
alternating pairs with the same number of threads. Ratios are of the two runs of a pair, above 1 where Fovea is faster.

    optimum-cli export openvino --model FOLDER --weight-format int8 EXPORTED
    bench/scripts/compare_openvino.py --model FOLDER --type q8 --peer EXPORTED --threads 2
"""
import os
import time

from compare import compare_folders, refuse

import numpy as np
import openvino
from openvino import opset13


class Peer:
    """A compiled model of one sequence, whose cache is its own."""

    def __init__(self, options):
        core = openvino.Core()
        path = os.path.join(options.peer, "openvino_model.xml")
        if not os.path.isfile(path):
            refuse(f"--peer: expected a folder with openvino_model.xml, got {options.peer}")
        model = core.read_model(path)
        last_position_alone(model)
        config = {"INFERENCE_NUM_THREADS": options.threads, "PERFORMANCE_HINT": "LATENCY"}
        if options.peer_kv:
            config["KV_CACHE_PRECISION"] = options.peer_kv
        self.compiled = core.compile_model(model, "CPU", config)
        self.request = self.compiled.create_infer_request()
        self.names = {name for port in self.compiled.inputs for name in port.names}

    def infer(self, first, n):
        """n tokens from position `first` on."""
        inputs = {"input_ids": 100 + np.arange(first, first + n, dtype=np.int64)[None] % 1000,
                  "attention_mask": np.ones((1, first + n), np.int64),
                  "position_ids": np.arange(first, first + n, dtype=np.int64)[None],
                  "beam_idx": np.zeros(1, np.int32)}
        self.request.infer({name: value for name, value in inputs.items() if name in self.names})

    def tokens_per_second(self, options, phase):
        self.request.reset_state()
        if phase == "prefill":
            begin, n = time.perf_counter(), options.prompt
            self.infer(0, n)
        else:
            self.infer(0, max(1, options.depth))
            begin, n = time.perf_counter(), options.tokens
            for i in range(n):
                self.infer(max(1, options.depth) + i, 1)
        return n / (time.perf_counter() - begin)


def last_position_alone(model):
    """Cuts the rows of the output layer's product to the last one."""
    node = model.output("logits").get_node()
    while node.get_type_name() != "MatMul":
        if len(node.inputs()) == 0:
            refuse("--peer: expected a product of the output layer before logits, got none")
        node = node.input_value(0).get_node()
    last = opset13.slice(node.input_value(0), np.array([-1]), np.array([2**31 - 1]), np.array([1]), np.array([1]))
    node.input(0).replace_source_output(last.output(0))
    model.validate_nodes_and_infer_types()


def add_options(parser):
    parser.add_argument("--peer-kv", help="the peer's cache, such as f16 (default: its own choice)")


if __name__ == "__main__":
    compare_folders(__doc__, Peer, add_options)
