"""Modules of torch.nn that a configuration says all of, and others, which are refused by the part that differs."""

import numpy as np
import pytest

import fovea

torch = pytest.importorskip("torch")
nn = torch.nn
OPTIONS = {"d_model": 16, "nhead": 4, "dim_feedforward": 24, "batch_first": True, "dropout": 0.0}


def layer(kind=nn.TransformerEncoderLayer, **changed):
    return kind(**{**OPTIONS, **changed})


def encoder(*layers, norm=None):
    """A TransformerEncoder with exactly these layers."""
    made = nn.TransformerEncoder(layers[0], 1, norm, enable_nested_tensor=False)
    made.layers = nn.ModuleList(layers)
    return made


def decoder(*layers, norm=None):
    made = nn.TransformerDecoder(layers[0], 1, norm)
    made.layers = nn.ModuleList(layers)
    return made


def both(**changed):
    return nn.Transformer(**{**OPTIONS, "num_encoder_layers": 1, "num_decoder_layers": 1, **changed})


def with_part(module, path, part):
    setattr(module.get_submodule(path.rpartition(".")[0]), path.rpartition(".")[2], part)
    return module


class Doubled(nn.TransformerEncoderLayer):
    """A layer with its own forward."""

    def forward(self, *args, **named):
        """Twice what it gives."""
        return 2 * super().forward(*args, **named)


class DoubledEncoder(nn.TransformerEncoder):
    """An encoder with its own forward."""


class TransformerEncoder(nn.Module):
    """Somebody else's."""

    def __init__(self):
        super().__init__()
        self.layers, self.norm = nn.ModuleList([layer()]), None


class DoubledAttention(nn.MultiheadAttention):
    """An attention with its own forward."""


def gelu(x):
    return x


def decoder_layer(**changed):
    return layer(nn.TransformerDecoderLayer, **changed)


REFUSED = [
    (lambda: encoder(layer(), layer(activation="gelu")),
     "layers[1]: activation: expected relu as in layers[0], got gelu"),
    (lambda: encoder(layer(), layer(nhead=2)),
     "layers[1].self_attn: nhead: expected 4 as in layers[0].self_attn, got 2"),
    (lambda: encoder(layer(), layer(layer_norm_eps=1e-2)),
     "layers[1].norm1: layer_norm_eps: expected 1e-05 as in layers[0].norm1, got 0.01"),
    (lambda: encoder(layer(), layer(norm_first=True)),
     "layers[1]: norm_first: expected False as in layers[0], got True"),
    (lambda: encoder(layer(), norm=nn.LayerNorm(16, eps=1e-2)),
     "norm: layer_norm_eps: expected 1e-05 as in layers[0].norm1, got 0.01"),
    (lambda: encoder(layer(), norm=nn.RMSNorm(16)), "norm: expected a torch.nn.LayerNorm, got RMSNorm"),
    (lambda: with_part(encoder(layer()), "layers.0.norm2", nn.LayerNorm(16, eps=1e-2)),
     "layers[0].norm2: layer_norm_eps: expected 1e-05 as in layers[0].norm1, got 0.01"),
    (lambda: with_part(encoder(layer()), "layers.0.norm1", nn.RMSNorm(16)),
     "layers[0].norm1: expected a torch.nn.LayerNorm, got RMSNorm"),
    (lambda: with_part(encoder(layer()), "layers.0.self_attn", DoubledAttention(16, 4)),
     "layers[0].self_attn: expected a torch.nn.MultiheadAttention, got test_torch_modules.DoubledAttention"),
    (lambda: encoder(layer(activation=nn.GELU("tanh"))),
     "layers[0].activation: expected relu or gelu, which is exact, got GELU(approximate='tanh')"),
    (lambda: encoder(layer(activation=gelu)), "layers[0].activation: expected relu or gelu, which is exact, got gelu"),
    (lambda: encoder(layer(activation=nn.SiLU())),
     "layers[0].activation: expected relu or gelu, which is exact, got SiLU"),
    (lambda: both(custom_encoder=encoder(layer(activation="gelu"), norm=nn.LayerNorm(16))),
     "decoder.layers[0]: activation: expected gelu as in encoder.layers[0], got relu"),
    (lambda: both(custom_encoder=encoder(layer())),
     "decoder.norm: final_norm: expected False as in encoder.norm, got True"),
    (lambda: both(custom_encoder=nn.Identity()), "encoder: expected a torch.nn.TransformerEncoder, got Identity"),
    (lambda: both(num_encoder_layers=0), "encoder.layers: expected 1 or more, got none"),
    (lambda: both(num_decoder_layers=0), "decoder.layers: expected 1 or more, got none"),
    (lambda: encoder(layer(), Doubled(**OPTIONS)),
     "layers[1]: expected a torch.nn.TransformerEncoderLayer, got test_torch_modules.Doubled"),
    (lambda: decoder(decoder_layer(), decoder_layer(nhead=2)),
     "layers[1].self_attn: nhead: expected 4 as in layers[0].self_attn, got 2"),
    (lambda: with_part(decoder(decoder_layer()), "layers.0.multihead_attn", nn.MultiheadAttention(16, 2)),
     "layers[0].multihead_attn: nhead: expected 4 as in layers[0].self_attn, got 2"),
    (lambda: with_part(decoder(decoder_layer()), "layers.0.norm3", nn.LayerNorm(16, eps=1e-2)),
     "layers[0].norm3: layer_norm_eps: expected 1e-05 as in layers[0].norm1, got 0.01"),
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(REFUSED)))
def test_a_module_that_is_not_all_said_is_refused_by_the_part(number):
    make, words = REFUSED[number]
    with pytest.raises((TypeError, ValueError)) as refused:
        fovea.convert(make())
    assert str(refused.value) == f"source: {words}"


def test_classes_of_others_are_refused():
    for module in (
        TransformerEncoder(),
        DoubledEncoder(layer(), 1, enable_nested_tensor=False),
        DoubledAttention(16, 4),
    ):
        words = rf"^source: expected a module of torch\.nn .*, got test_torch_modules\.{type(module).__name__}$"
        with pytest.raises(TypeError, match=words):
            fovea.convert(module)
    words = r"^module: expected a torch\.nn\.MultiheadAttention, got test_torch_modules\.DoubledAttention$"
    with pytest.raises(TypeError, match=words):
        fovea.MultiheadAttention.from_torch(DoubledAttention(16, 4))


@pytest.mark.parametrize("activation", ["relu", "gelu", nn.ReLU(), nn.GELU(), torch.relu])
def test_layers_that_agree_are_pytorchs(activation):
    torch.manual_seed(4)
    layers = [layer(activation=activation, layer_norm_eps=1e-3) for _ in range(3)]
    module = encoder(*layers, norm=nn.LayerNorm(16, eps=1e-3)).eval()
    x = torch.randn(2, 5, 16)
    with torch.no_grad():
        expected = module(x).numpy()
    np.testing.assert_allclose(fovea.convert(module).encode_arrays(x), expected, atol=1e-4)
