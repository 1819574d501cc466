#!/usr/bin/env python3
"""Makes tests/golden/quants: a q8 and a q4 matrix as panels, rows of activations, and their exact product.

Needs numpy. Everything is computed from the words of docs/numerics.md and docs/format.md alone: rows are quantized by
groups of 32, dot products of a group are integers, and each fma is an exact rational number rounded once.

    x.npy           float32 [14, 600]: two blocks of rows; one row has a group of zeros, one of tiny numbers, one a NaN
    q8.npy, q4.npy  uint8 [2, panel bytes] of 32 rows
    q8_out.npy ...  float32 [14, 32]
"""
import pathlib
from fractions import Fraction

import numpy

FOLDER = pathlib.Path(__file__).resolve().parent / "quants"
N_ROWS, N_COLS, SEQ_LEN = 32, 600, 14  # more than one block of 512 columns; the last group is short, its twin missing
GROUP, LANES, BLOCK = 32, 16, 512
N_GROUPS = -(-N_COLS // (2 * GROUP)) * 2
f32 = numpy.float32


def to_f32(exact):
    """The float32 nearest to a rational number, ties to even."""
    near = f32(float(exact))
    candidates = [near, numpy.nextafter(near, f32(numpy.inf)), numpy.nextafter(near, f32(-numpy.inf))]
    return min(candidates, key=lambda c: (abs(Fraction(float(c)) - exact), int(c.view(numpy.uint32)) & 1))


def fma(a, b, c):
    if not numpy.isfinite([a, b, c]).all():
        return f32(numpy.nan)
    return to_f32(Fraction(float(a)) * Fraction(float(b)) + Fraction(float(c)))


def quantize(x):
    """Quants [N_GROUPS, 32] and scales of one row; padding is 0."""
    padded = numpy.zeros(N_GROUPS * GROUP, f32)
    padded[:N_COLS] = x
    quants, scales = numpy.zeros((N_GROUPS, GROUP), numpy.int64), numpy.zeros(N_GROUPS, f32)
    for i, group in enumerate(padded.reshape(N_GROUPS, GROUP)):
        amax = numpy.abs(group).max()
        if not numpy.isfinite(amax):
            scales[i] = numpy.nan
        elif amax >= f32(2.0**-100):
            scales[i] = amax / f32(127)
            quants[i] = numpy.rint(group * (f32(127) / amax)).astype(numpy.int64)
    return quants, scales


def product(weights, weight_scales, rows):
    """out[row][n] in the order that is promised."""
    out = numpy.zeros((len(rows), N_ROWS), f32)
    for row, x in enumerate(rows):
        quants, scales = quantize(x)
        dots = numpy.einsum("ngc,gc->ng", weights, quants)
        for n in range(N_ROWS):
            total = None
            for begin in range(0, N_GROUPS, BLOCK // GROUP):
                total_of_block = f32(0)
                for g in range(begin, min(begin + BLOCK // GROUP, N_GROUPS)):
                    scale = f32(weight_scales[n, g]) * scales[g]
                    total_of_block = fma(f32(dots[n, g]), scale, total_of_block)
                total = total_of_block if total is None else total + total_of_block
            out[row, n] = total
    return out


def panels(weights, scales, bits):
    """Superblocks of two groups: f16 scales [2][16], then the quants four columns of a row together."""
    result = []
    for panel in range(N_ROWS // LANES):
        rows = slice(panel * LANES, (panel + 1) * LANES)
        data = b""
        for g in range(0, N_GROUPS, 2):
            data += scales[rows, g:g + 2].T.astype("<f2").tobytes()
            for group in (g, g + 1):
                cells = weights[rows, group].reshape(LANES, GROUP // 4, 4).transpose(1, 0, 2)
                if bits == 8:
                    data += cells.astype(numpy.int8).tobytes()
                else:
                    nibbles = (cells + 8).astype(numpy.uint8)
                    data += (nibbles[0::2] | nibbles[1::2] << 4).tobytes()
        result.append(numpy.frombuffer(data, numpy.uint8))
    return numpy.stack(result)


def main():
    FOLDER.mkdir(exist_ok=True)
    random = numpy.random.default_rng(20260101)
    rows = random.standard_normal((SEQ_LEN, N_COLS)).astype(f32)
    rows[1] *= f32(1e-30)
    rows[2, 64:96] = 0
    rows[3, 32:64] *= f32(2.0**-104)
    rows[4, 100] = numpy.nan
    rows[5, 599] = 1e30
    numpy.save(FOLDER / "x.npy", rows)
    for bits, low, high in ((8, -127, 127), (4, -8, 7)):
        weights = random.integers(low, high + 1, (N_ROWS, N_GROUPS, GROUP))
        weights.reshape(N_ROWS, -1)[:, N_COLS:] = 0
        scales = (random.standard_normal((N_ROWS, N_GROUPS)) * 0.01).astype(numpy.float16)
        scales[:, -(-N_COLS // GROUP):] = 0
        scales[7, 3] = numpy.float16(6e-8)  # subnormal
        numpy.save(FOLDER / f"q{bits}.npy", panels(weights, scales, bits))
        numpy.save(FOLDER / f"q{bits}_out.npy", product(weights, scales, rows))


if __name__ == "__main__":
    main()
