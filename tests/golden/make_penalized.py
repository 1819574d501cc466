"""The tokens that penalties and biases choose without any chance, in NumPy's float32: sampler_test.cpp has their hash.

    python3 make_penalized.py    # prints it
"""
import numpy as np

F = np.float32
N_VOCAB, N_TOKENS, N_RECENT = 50, 200, 12
REPEAT, FREQUENCY, PRESENCE = F(1.2), F(0.37), F(-0.61)
BIASES = [(3, F(2.5)), (7, -F(np.inf)), (3, F(-0.3)), (99, F(1))]  # of one token they add up; the last is none


def main():
    noise, text, fnv = 1, [], 2166136261
    for _ in range(N_TOKENS):
        logits = np.zeros(N_VOCAB, F)
        for i in range(N_VOCAB):
            noise = (noise * 1664525 + 1013904223) % 2**32
            signed = noise - 2**32 if noise >= 2**31 else noise
            logits[i] = F(signed >> 8) * F(2.0**-20)
        for token, bias in BIASES:
            if token < N_VOCAB:
                logits[token] = logits[token] + bias
        for token in set(text[-N_RECENT:]):
            logits[token] = logits[token] / REPEAT if logits[token] > 0 else logits[token] * REPEAT
        for token in set(text):
            logits[token] = logits[token] - (FREQUENCY * F(text.count(token)) + PRESENCE)
        text.append(int(np.argmax(logits)))
        fnv = (fnv ^ text[-1]) * 16777619 % 2**32
    print(fnv, len(set(text)), text[:12])


if __name__ == "__main__":
    main()
