#!/usr/bin/env python3
"""llama.cpp's logits, by the C functions of a library that has it, such as that in the package xllamacpp.

    llama_library.py LIBRARY MODEL TOKENS OUT     TOKENS is a list in JSON; OUT becomes an .npy file [n_tokens, n_vocab]
"""
import ctypes
import json
import sys

import numpy

SIZE_OF_SETTINGS = 2048  # more than llama.cpp's structures of settings have: they are passed on as they come


class Settings(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_byte * SIZE_OF_SETTINGS)]


class Batch(ctypes.Structure):
    _fields_ = [("n_tokens", ctypes.c_int32), ("token", ctypes.POINTER(ctypes.c_int32)), ("embd", ctypes.c_void_p),
                ("pos", ctypes.POINTER(ctypes.c_int32)), ("n_seq_id", ctypes.POINTER(ctypes.c_int32)),
                ("seq_id", ctypes.POINTER(ctypes.POINTER(ctypes.c_int32))), ("logits", ctypes.POINTER(ctypes.c_int8))]


class LlamaCpp:
    """A model of llama.cpp with its own settings, through the C interface of a library that has it."""

    def __init__(self, library, path):
        self.lib = lib = ctypes.CDLL(str(library))
        for name in ("model_default_params", "context_default_params"):
            getattr(lib, "llama_" + name).restype = Settings
        for name in ("model_load_from_file", "init_from_model", "model_get_vocab"):
            getattr(lib, "llama_" + name).restype = ctypes.c_void_p
        lib.llama_batch_init.restype = Batch
        lib.llama_get_logits.restype = ctypes.POINTER(ctypes.c_float)
        self.quiet = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p)(lambda *_: None)
        lib.llama_log_set(self.quiet, None)
        lib.llama_backend_init()
        self.model = ctypes.c_void_p(lib.llama_model_load_from_file(str(path).encode(), lib.llama_model_default_params()))
        self.n_vocab = lib.llama_vocab_n_tokens(ctypes.c_void_p(lib.llama_model_get_vocab(self.model)))

    def logits(self, tokens):
        lib = self.lib
        context = ctypes.c_void_p(lib.llama_init_from_model(self.model, lib.llama_context_default_params()))
        batch = lib.llama_batch_init(len(tokens), 0, 1)
        batch.n_tokens = len(tokens)
        for i, token in enumerate(tokens):
            batch.token[i], batch.pos[i], batch.n_seq_id[i], batch.logits[i], batch.seq_id[i][0] = int(token), i, 1, 1, 0
        if lib.llama_decode(context, batch):
            raise RuntimeError("llama.cpp does not compute the model")
        logits = numpy.ctypeslib.as_array(lib.llama_get_logits(context), (len(tokens), self.n_vocab)).copy()
        lib.llama_batch_free(batch)
        lib.llama_free(context)
        return logits


if __name__ == "__main__":
    numpy.save(sys.argv[4], LlamaCpp(*sys.argv[1:3]).logits(json.loads(sys.argv[3])))
