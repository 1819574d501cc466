"""Attention over arrays, beside softmax(QKᵀ)V written out in float64, and beside PyTorch where it is installed."""

import numpy as np
import pytest
from conftest import softmax

import fovea

RNG = np.random.default_rng(1)


def normal(*shape):
    return RNG.normal(size=shape).astype(np.float32)


def by_hand(query, key, value, *, hidden=None, added=None, causal=False, scale=None, softcap=0.0):
    """In float64; key-value heads repeat for their query heads."""
    repeat = query.shape[1] // key.shape[1]
    q, k, v = query.astype(float), key.astype(float).repeat(repeat, 1), value.astype(float).repeat(repeat, 1)
    scores = np.einsum("bhqd,bhkd->bhqk", q, k) * (scale or q.shape[-1] ** -0.5)
    if softcap:
        scores = softcap * np.tanh(scores / softcap)
    if added is not None:
        scores = scores + added
    if hidden is not None:
        scores = np.where(hidden, -np.inf, scores)
    if causal:
        past = k.shape[2] - q.shape[2]
        scores = np.where(np.triu(np.ones(scores.shape[-2:], bool), past + 1), -np.inf, scores)
    weights = softmax(scores)
    return weights @ v, weights


@pytest.mark.parametrize("shape", [(1, 1, 1, 1), (2, 4, 5, 8), (3, 2, 70, 33), (1, 8, 17, 64)])
@pytest.mark.parametrize("causal", [False, True])
def test_attend_is_the_formula(shape, causal):
    batch, heads, n, dim = shape
    query, key, value = normal(*shape), normal(batch, heads, n, dim), normal(batch, heads, n, dim + 3)
    got, weights = fovea.attend(query, key, value, causal=causal, return_weights=True)
    expected, expected_weights = by_hand(query, key, value, causal=causal)
    np.testing.assert_allclose(got, expected, atol=1e-5)
    np.testing.assert_allclose(weights, expected_weights, atol=1e-6)


def test_tensors_in_any_order_are_taken():
    torch = pytest.importorskip("torch")
    query, key = normal(3, 2, 5, 8), normal(3, 2, 6, 8)
    hidden = RNG.random((5, 6)) < 0.4
    expected = fovea.attend(query, key, key, mask=hidden, key_padding_mask=np.zeros((3, 6), bool)).tobytes()
    turned = [torch.tensor(np.ascontiguousarray(array.swapaxes(2, 3))).transpose(2, 3) for array in (query, key)]
    mask = torch.tensor(np.ascontiguousarray(hidden.T)).T
    padding = torch.zeros(3, dtype=torch.bool)[:, None].expand(3, 6)
    got = fovea.attend(turned[0], turned[1], turned[1], mask=mask, key_padding_mask=padding)
    assert got.tobytes() == expected
    one = torch.tensor(key[:1]).expand(3, 2, 6, 8)
    assert (
        fovea.attend(query, one, one).tobytes() == fovea.attend(query, one.numpy().copy(), one.numpy().copy()).tobytes()
    )
    with pytest.raises(TypeError, match=r"^query: expected an array of float32, got float64$"):
        fovea.attend(turned[0].double(), turned[1], turned[1])


def test_fewer_key_value_heads_other_lengths_scale_and_softcap():
    query, key, value = normal(2, 6, 4, 16), normal(2, 2, 9, 16), normal(2, 2, 9, 5)
    got = fovea.attend(query, key, value, scale=0.3, softcap=2.0)
    np.testing.assert_allclose(got, by_hand(query, key, value, scale=0.3, softcap=2.0)[0], atol=1e-5)


def test_masks():
    query, key, value = normal(2, 3, 4, 8), normal(2, 3, 6, 8), normal(2, 3, 6, 8)
    for shape in [(4, 6), (2, 4, 6), (6, 4, 6), (2, 3, 4, 6), (1, 1, 4, 6), (2, 3, 1, 6)]:
        full = shape if len(shape) != 3 else ((2, 1, 4, 6) if shape[0] == 2 else (2, 3, 4, 6))
        hidden, added = RNG.random(shape) < 0.4, normal(*shape)
        expected = by_hand(query, key, value, hidden=hidden.reshape(full))[0]
        np.testing.assert_allclose(fovea.attend(query, key, value, mask=hidden), expected, atol=1e-5)
        np.testing.assert_allclose(fovea.attend(query, key, value, keep_mask=~hidden), expected, atol=1e-5)
        expected = by_hand(query, key, value, added=added.reshape(full).astype(float))[0]
        np.testing.assert_allclose(fovea.attend(query, key, value, mask=added), expected, atol=1e-5)
    padding = np.array([[0, 0, 1, 0, 1, 1], [1, 1, 1, 1, 1, 1]], bool)
    got = fovea.attend(query, key, value, key_padding_mask=padding)
    np.testing.assert_allclose(got, by_hand(query, key, value, hidden=padding[:, None, None])[0], atol=1e-5)
    assert not got[1].any()  # who sees nothing gets zeros


def test_a_mask_without_keys_is_refused():
    query, key = normal(2, 3, 4, 8), normal(2, 3, 6, 8)
    for shape in [(4, 1), (2, 4, 1), (2, 3, 4, 1), (1, 1, 1, 1), (1,)]:
        for name, mask in (
            ("mask", normal(*shape)),
            ("mask", np.ones(shape, bool)),
            ("keep_mask", np.ones(shape, bool)),
        ):
            with pytest.raises(ValueError, match=r"^mask: expected a last dimension of 6 keys, got \[") as refused:
                fovea.attend(query, key, key, **{name: mask})
            assert str(refused.value).endswith(str(list(shape)))
    for name in ("mask", "keep_mask"):
        with pytest.raises(ValueError, match=r"^mask: expected 1 to 4 dimensions, the last of keys, got \[\]$"):
            fovea.attend(query, key, key, **{name: np.array(True)})
    one = key[:, :, :1]  # of one key a dimension of 1 is all there is
    assert not fovea.attend(query, one, one, mask=np.ones((4, 1), bool)).any()


def test_the_result_takes_no_masks_memory():
    query, key = normal(4, 4), normal(4, 4)
    for name, shape in (("mask", (4, 4)), ("key_padding_mask", (1, 4)), ("past_key", (2, 4)), ("past_value", (2, 4))):
        out = np.zeros((4, 4), np.float32)
        given = {"past_key": key[:2], "past_value": key[:2]} if name.startswith("past") else {}
        given[name] = out[: shape[0], : shape[1]]
        with pytest.raises(ValueError, match=rf"^out: expected memory of its own, got that of {name}$"):
            fovea.attend(query, key, key, out=out, **given)


def test_one_batch_may_stand_for_all():
    query, key = normal(3, 2, 5, 8), normal(1, 2, 6, 8)
    key_of_all = np.broadcast_to(key, (3, 2, 6, 8))
    expected = fovea.attend(query, key_of_all.copy(), key_of_all.copy()).tobytes()
    assert fovea.attend(query, key_of_all, key_of_all).tobytes() == expected
    same = np.broadcast_to(query[:1], query.shape)
    assert (
        fovea.attend(same, key_of_all, key_of_all).tobytes()
        == fovea.attend(same.copy(), key_of_all, key_of_all).tobytes()
    )


def test_past_keys_and_lengths():
    query, key, value = normal(2, 3, 4, 8), normal(2, 3, 9, 8), normal(2, 3, 9, 8)
    whole = fovea.attend(query, key, value, kv_lengths=[9, 9], causal=True)
    past = {"past_key": key[:, :, :5], "past_value": value[:, :, :5]}
    parted = fovea.attend(query, key[:, :, 5:], value[:, :, 5:], causal=True, **past)
    assert whole.tobytes() == parted.tobytes()
    np.testing.assert_allclose(parted, by_hand(query, key, value, causal=True)[0], atol=1e-5)


def test_views_are_read_and_written_where_they_are():
    batch, n, heads, dim = 2, 7, 3, 8
    rows = normal(batch, n, 3, heads, dim)  # as one projection makes them: [batch, seq, 3·d_model]
    query, key, value = (rows[:, :, i].transpose(0, 2, 1, 3) for i in range(3))
    expected = fovea.attend(*(np.ascontiguousarray(a) for a in (query, key, value)))
    merged = np.empty((batch, n, heads * dim), np.float32)
    out = merged.reshape(batch, n, heads, dim).transpose(0, 2, 1, 3)
    assert fovea.attend(query, key, value, out=out) is out
    assert np.ascontiguousarray(out).tobytes() == expected.tobytes()
    np.testing.assert_array_equal(merged.reshape(batch, n, heads, dim)[0, 3, 1], expected[0, 1, 3])
    reversed_keys = fovea.attend(query, key[:, :, ::-1], value[:, :, ::-1])  # copied: no negative strides in the engine
    np.testing.assert_allclose(reversed_keys, expected, atol=1e-5)


def test_leading_dimensions_may_be_missing():
    query = normal(5, 8)
    expected = fovea.attend(query[None, None], query[None, None], query[None, None])
    assert fovea.attend(query, query, query).tobytes() == expected.tobytes()
    result, weights = fovea.attend(query[None], query[None], query[None], return_weights=True)
    assert result.shape == (1, 5, 8)
    assert weights.shape == (1, 5, 5)


def test_any_number_of_threads_and_any_company_give_the_same_bits():
    query, key, value = normal(4, 8, 130, 32), normal(4, 8, 130, 32), normal(4, 8, 130, 32)
    whole = fovea.attend(query, key, value, n_threads=1)
    assert fovea.attend(query, key, value, n_threads=2).tobytes() == whole.tobytes()
    assert fovea.attend(query[1:2], key[1:2], value[1:2]).tobytes() == whole[1:2].tobytes()


def state_dict(embed_dim, kdim=None, vdim=None):
    if kdim is None:
        weights = {"in_proj_weight": normal(3 * embed_dim, embed_dim)}
    else:
        weights = {
            "q_proj_weight": normal(embed_dim, embed_dim),
            "k_proj_weight": normal(embed_dim, kdim),
            "v_proj_weight": normal(embed_dim, vdim),
        }
    return {
        **weights,
        "in_proj_bias": normal(3 * embed_dim),
        "out_proj.weight": normal(embed_dim, embed_dim),
        "out_proj.bias": normal(embed_dim),
    }


def test_multihead_attention_is_its_formula():
    width, heads, batch, n = 12, 3, 2, 5
    state = state_dict(width)
    module = fovea.MultiheadAttention(width, heads, state_dict=state, batch_first=True)
    x = normal(batch, n, width)
    got, weights = module(x, x, x, average_attn_weights=False)
    projected = x.astype(float) @ state["in_proj_weight"].T.astype(float) + state["in_proj_bias"]
    q, k, v = (a.reshape(batch, n, heads, -1).transpose(0, 2, 1, 3) for a in np.split(projected, 3, axis=-1))
    attended, expected_weights = by_hand(q, k, v)
    merged = attended.transpose(0, 2, 1, 3).reshape(batch, n, width)
    expected = merged @ state["out_proj.weight"].T.astype(float) + state["out_proj.bias"]
    np.testing.assert_allclose(got, expected, atol=1e-4)
    np.testing.assert_allclose(weights, expected_weights, atol=1e-5)
    seq_first = fovea.MultiheadAttention(width, heads, state_dict=state)
    swapped = x.swapaxes(0, 1)
    assert seq_first(swapped, swapped, swapped)[0].swapaxes(0, 1).tobytes() == got.tobytes()
    alone = module(x[0], x[0], x[0])
    assert alone[0].tobytes() == got[0].tobytes()
    assert alone[1].shape == (n, n)
    assert module(x, x, x, need_weights=False)[1] is None


@pytest.mark.parametrize("case", range(12))
def test_multihead_attention_is_pytorchs(case):
    torch = pytest.importorskip("torch")
    torch.manual_seed(case)
    options = {
        "bias": case % 2 == 0, "batch_first": case % 3 == 0, "add_bias_kv": case % 4 == 1, "add_zero_attn": case % 5
        == 2,
    }  # fmt: skip
    if case % 3 == 1:
        options.update(kdim=10, vdim=7)
    reference = torch.nn.MultiheadAttention(24, 4, **options).eval()
    for parameter in reference.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    shapes = [(5, 2, 24), (8, 2, options.get("kdim", 24)), (8, 2, options.get("vdim", 24))]
    arrays = [torch.randn(s if not options["batch_first"] else (s[1], s[0], s[2])) for s in shapes]
    mask = torch.rand(5, 8) < 0.3
    mask[:, 0] = False
    padding = torch.zeros(2, 8, dtype=torch.bool)
    padding[1, 5:] = True
    with torch.no_grad():
        expected, expected_weights = reference(*arrays, attn_mask=mask, key_padding_mask=padding)
    module = fovea.MultiheadAttention.from_torch(reference)
    got, weights = module(*arrays, attn_mask=mask, key_padding_mask=padding)  # tensors go in as they are
    np.testing.assert_allclose(got, expected.numpy(), atol=1e-5)
    np.testing.assert_allclose(weights, expected_weights.numpy(), atol=1e-5)


def test_attend_takes_tensors():
    torch = pytest.importorskip("torch")
    query, key, value = (torch.randn(2, 4, 9, 16) for _ in range(3))
    out = torch.empty(2, 4, 9, 16)
    assert fovea.attend(query, key, value, causal=True, out=out) is out
    expected = torch.nn.functional.scaled_dot_product_attention(query, key, value, is_causal=True)
    np.testing.assert_allclose(out.numpy(), expected.numpy(), atol=1e-5)


def test_one_row_has_no_direction():
    one = np.ones((1, 1, 1, 4), np.float32)
    for turned in (one[::-1], one[:, :, ::-1], np.flip(one, (0, 1, 2))):
        np.testing.assert_array_equal(fovea.attend(turned, turned, turned), one)
