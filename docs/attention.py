# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Attention, from one line of NumPy to a whole model
#
# Every formula here is computed twice: by hand, in NumPy, and by `fovea`. Each cell ends with a check, so the
# lesson is also a test. `jupytext --to notebook docs/attention.py` makes a notebook of it.

# %%
import os
from pathlib import Path

import numpy as np

import fovea

rng = np.random.default_rng(0)


def normal(*shape):
    """Numbers to compute with."""
    return rng.normal(size=shape).astype(np.float32)


# %% [markdown]
# ## 1. A soft lookup
#
# A dictionary finds the value whose key equals the query. Attention finds all values at once, each as much as its key
# resembles the query:
#
# $$\mathrm{attention}(Q, K, V) = \mathrm{softmax}\left(\frac{QK^\top}{\sqrt{d}}\right)V$$
#
# `Q` has a row per query, `K` and `V` a row per thing that can be found. `softmax` turns a row of scores into
# weights that are positive and sum to 1. Without the division by $\sqrt{d}$ the scores would grow with the width
# of the rows, and `softmax` would pick one value and ignore the rest (Vaswani et al. 2017, section 3.2.1).


# %%
def softmax(scores):
    """Weights: positive, and 1 in sum. The row's largest score is subtracted first, so that exp cannot overflow."""
    powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def attention(query, key, value):
    """[n_queries, d], [n_keys, d], [n_keys, d_value] -> [n_queries, d_value]."""
    scores = query @ key.T / np.sqrt(query.shape[-1])
    return softmax(scores) @ value


query, key, value = normal(3, 8), normal(5, 8), normal(5, 4)
by_hand = attention(query, key, value)
np.testing.assert_allclose(fovea.attend(query, key, value), by_hand, atol=1e-5)
by_hand.round(3)

# %% [markdown]
# The scores are where the meaning is. A query that equals a key, and is long, gets that key's value almost alone.

# %%
sharp = attention(10 * key[2:3], key, value)
print(np.round(sharp, 2), np.round(value[2], 2), sep="\n")
np.testing.assert_allclose(fovea.attend(10 * key[2:3], key, value), sharp, atol=1e-5)

# %% [markdown]
# ## 2. Heads
#
# One softmax has one opinion. Heads are several attentions side by side, each over its own slice of the rows, so
# that one can look at the word before and another at the subject of the sentence. In arrays a head is one more
# dimension: `[batch, heads, seq, dim]`.

# %%
n, heads, dim = 6, 4, 8
rows = normal(n, 3 * heads * dim)  # what one matrix product makes: queries, keys and values side by side
q, k, v = (part.reshape(n, heads, dim).transpose(1, 0, 2) for part in np.split(rows, 3, axis=1))
by_hand = np.stack([attention(q[h], k[h], v[h]) for h in range(heads)])
np.testing.assert_allclose(fovea.attend(q, k, v), by_hand, atol=1e-5)  # read in place, whatever the strides
by_hand.shape

# %% [markdown]
# Keys and values may have fewer heads than queries, which then share them. A decoder keeps keys and values of the
# whole text, so that a quarter of the heads is a quarter of that memory (Ainslie et al. 2023).

# %%
shared = fovea.attend(q, k[:2], v[:2])
by_hand = np.stack([attention(q[h], k[h // 2], v[h // 2]) for h in range(heads)])
np.testing.assert_allclose(shared, by_hand, atol=1e-5)

# %% [markdown]
# ## 3. Masks
#
# A model that writes must not look ahead: position $i$ sees positions $0$ to $i$. Hidden scores become $-\infty$,
# and their weights 0. That is all that makes a decoder a decoder.

# %%
result, weights = fovea.attend(q, k, v, causal=True, return_weights=True)
scores = q @ k.transpose(0, 2, 1) / np.sqrt(dim)
scores[:, np.triu(np.ones((n, n), bool), 1)] = -np.inf
np.testing.assert_allclose(weights, softmax(scores), atol=1e-6)
weights[0].round(2)

# %% [markdown]
# Since nothing before a position depends on what comes after it, a text can be computed token by token: the keys and
# values of the past are kept, and only the new query is computed. The result is the same, here to the last bit.

# %%
last = fovea.attend(q[:, 5:], k[:, 5:], v[:, 5:], past_key=k[:, :5], past_value=v[:, :5], causal=True)
assert last.tobytes() == np.ascontiguousarray(result[:, 5:]).tobytes()

# %% [markdown]
# Padding is a mask of keys, and distance can be a mask of numbers: ALiBi adds $-m\,(i - j)$ to the score of query
# $i$ and key $j$, with another slope $m$ for each head (Press et al. 2022).

# %%
distance = np.arange(n)[:, None] - np.arange(n)[None]
alibi = (-(0.5 ** np.arange(1, heads + 1))[:, None, None] * distance).astype(np.float32)
scores = q @ k.transpose(0, 2, 1) / np.sqrt(dim) + alibi
scores[:, distance < 0] = -np.inf
result = fovea.attend(q[None], k[None], v[None], mask=alibi[None], causal=True)[0]
np.testing.assert_allclose(result, softmax(scores) @ v, atol=1e-5)

# %% [markdown]
# ## 4. Cross-attention
#
# Queries may come from one sequence, keys and values from another: a translation looks at its source. Nothing in the
# formula changes; the lengths differ. With its projections around it, this is what `torch.nn.MultiheadAttention` is.

# %%
width = heads * dim
state = {
    "in_proj_weight": normal(3 * width, width) / np.float32(np.sqrt(width)),
    "in_proj_bias": np.zeros(3 * width, np.float32),
    "out_proj.weight": normal(width, width) / np.float32(np.sqrt(width)),
    "out_proj.bias": np.zeros(width, np.float32),
}
module = fovea.MultiheadAttention(width, heads, state_dict=state, batch_first=True)
target, source = normal(1, 3, width), normal(1, 7, width)
result, weights = module(target, source, source, average_attn_weights=False)

w_q, w_k, w_v = np.split(state["in_proj_weight"], 3)


def split(rows):
    """[seq, width] -> [heads, seq, dim]."""
    return rows.reshape(len(rows), heads, dim).transpose(1, 0, 2)


q, k, v = split(target[0] @ w_q.T), split(source[0] @ w_k.T), split(source[0] @ w_v.T)
merged = np.stack([attention(q[h], k[h], v[h]) for h in range(heads)]).transpose(1, 0, 2).reshape(3, width)
np.testing.assert_allclose(result[0], merged @ state["out_proj.weight"].T, atol=1e-5)
weights.shape  # [batch, heads, target, source]

# %% [markdown]
# ## 5. A whole model
#
# The command line's built-in model turns home commands into JSON, with five layers of four heads. `attention`
# gives every pattern of every layer. As the last value of a notebook's cell it is a page: pick a layer and a head,
# and point at a token to see what it looks at.

# %%
model = fovea.Model(os.environ.get("FOVEA_MODEL", Path("..") / "tools" / "demo" / "demo.fovea"))
command = "turn on the lights in the kitchen"
print(command, "->", model.generate(command))
pattern = model.attention(command)
pattern

# %%
layers, heads, n, _ = pattern.shape
assert not np.triu(np.asarray(pattern), 1).any()  # nobody looks ahead
np.testing.assert_allclose(np.asarray(pattern).sum(-1), 1, atol=1e-5)
for layer in range(layers):
    previous = np.diagonal(pattern[layer], -1, axis1=1, axis2=2).mean(axis=1)
    first = pattern[layer][:, 1:, 0].mean(axis=1)
    print(f"layer {layer}: to the token before {previous.round(2)}, to the first token {first.round(2)}")

# %% [markdown]
# Two things to look for in any decoder: heads that look at the token before, from which the model builds words,
# and heads that rest on the first token when they have nothing to say.
