#!/usr/bin/env python3
"""Makes tests/golden/quants: a matrix of each quantized type as panels, rows of activations, and their exact product.

Needs numpy. Everything is computed from the words of docs/numerics.md and docs/format.md alone: rows are quantized by
groups of 32, dot products of a group are integers, and each fma is an exact rational number rounded once.

    x.npy           float32 [14, 600]: two blocks of rows; one row has a group of zeros, one of tiny numbers, one a NaN
    TYPE.npy        uint8 [2, panel bytes] of 32 rows
    TYPE_out.npy    float32 [14, 32]
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


def quantize(x, n_shared=1):
    """Quants [N_GROUPS, 32] and scales of one row, n_shared groups of which share one; padding is 0."""
    padded = numpy.zeros(N_GROUPS * GROUP, f32)
    padded[:N_COLS] = x
    groups = padded.reshape(N_GROUPS, GROUP)
    quants, scales = numpy.zeros((N_GROUPS, GROUP), numpy.int64), numpy.zeros(N_GROUPS, f32)
    for i in range(0, N_GROUPS, n_shared):
        own = slice(i, i + n_shared)
        amax = numpy.abs(groups[own]).max()
        if not numpy.isfinite(amax):
            scales[own] = numpy.nan
        elif amax >= f32(2.0**-100):
            scales[own] = amax / f32(127)
            quants[own] = numpy.rint(groups[own] * (f32(127) / amax)).astype(numpy.int64)
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


# Types beyond q8 and q4: bits, columns of a scale, whether groups have minima, what is taken from a stored quant.
FORMATS = {"q6_k": (6, 16, False, 32), "q5_k": (5, 32, True, 0), "q4_k": (4, 32, True, 0), "iq4_nl": (4, 32, False, 0),
           "mxfp4": (4, 32, False, 0), "q3_k": (3, 16, False, 4), "q2_k": (2, 16, True, 0),
           "iq4_xs": (4, 32, False, 0), "tq2_0": (2, 32, False, 1)}
LATER = {"q5": (5, 32, False, 16), "q4_1": (4, 32, True, 0), "q5_1": (5, 32, True, 0)}  # made last: random numbers before stay
CODEBOOKS = {"iq4_nl": [-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113],
             "iq4_xs": [-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113],
             "mxfp4": [0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12]}


def planes(stored, bits):
    """32 columns of 16 rows, [16, 32]: planes of bits, the lowest first."""
    cells, data = stored.reshape(LANES, GROUP // 4, 4).transpose(1, 0, 2), b""
    for width in {2: (2,), 3: (2, 1), 4: (4,), 5: (4, 1), 6: (4, 2)}[bits]:
        low, cells = cells & (1 << width) - 1, cells >> width
        for first in range(0, GROUP // 4, 8 // width):
            data += sum(low[first + i] << i * width for i in range(8 // width)).astype(numpy.uint8).tobytes()
    return data


def make_format(name, random, rows):
    """Panels with random quants, multiples and factors, and the exact product in the order that is promised."""
    bits, columns, has_minima, zero = (FORMATS | LATER)[name]
    factors, nibbles, alone = name.endswith(("_k", "_xs", "2_0")), name == "q2_k", name == "tq2_0"
    stored = random.integers(0, 1 << bits, (N_ROWS, N_GROUPS * GROUP))
    n_scales, n_supers = N_GROUPS * GROUP // columns, -(-N_GROUPS * GROUP // 256)
    minimum_columns = 16 if nibbles else GROUP
    multiples = random.integers(0, 16, (N_ROWS, n_scales)) if nibbles else random.integers(-128, 128, (N_ROWS, n_scales))
    if alone:
        multiples[:] = 1
    minima = random.integers(*((0, 16) if nibbles else (-128, 128)), (N_ROWS, N_GROUPS * GROUP // minimum_columns))
    halves = (random.standard_normal((2, N_ROWS, n_supers)) * 1e-3).astype(numpy.float16)
    halves[:, 7, 1] = numpy.float16(6e-8)  # subnormal
    if factors:
        of = numpy.arange(n_scales) * columns // 256
        scales = halves[0].astype(f32)[:, of] * multiples.astype(f32)  # exact: 11 and 8 bits
        least = halves[1].astype(f32)[:, numpy.arange(minima.shape[1]) * minimum_columns // 256] * minima.astype(f32)
    elif name == "mxfp4":
        exponents = random.integers(90, 136, (N_ROWS, n_scales)).astype(numpy.uint32)
        exponents[3, 5], exponents[4, 6] = 0, 1  # subnormal
        words = numpy.where(exponents < 2, 0x20 << numpy.minimum(exponents, 1), (exponents - 1) << 7).astype(numpy.uint16)
        scales = (words.astype(numpy.uint32) << 16).view(f32)
    else:
        words = (random.standard_normal((N_ROWS, n_scales)) * 1e-3).astype(numpy.float16)
        scales = words.astype(f32)
        if has_minima:
            minima = (random.standard_normal((N_ROWS, n_scales)) * 1e-2).astype(numpy.float16)
            minima[8, 2], minima[9, 4] = numpy.float16(-6e-8), numpy.float16(-0.0)  # subnormal, nothing
            least = minima.astype(f32)
    values = numpy.array(CODEBOOKS[name])[stored] if name in CODEBOOKS else stored - zero
    result = []
    for panel in range(N_ROWS // LANES):
        lanes = slice(panel * LANES, (panel + 1) * LANES)
        data = b""
        for unit in range(N_GROUPS // 2):
            if factors and unit % 4 == 0:
                low = halves[1] if has_minima else numpy.zeros_like(halves[1])
                data += halves[0][lanes, unit // 4].tobytes() + low[lanes, unit // 4].tobytes()
            own = slice(unit * 64 // columns, (unit + 1) * 64 // columns)
            if nibbles:
                data += (multiples[lanes, own] | minima[lanes, own] << 4).T.astype(numpy.uint8).tobytes()
            elif factors and not alone:
                data += multiples[lanes, own].T.astype(numpy.int8).tobytes()
            elif not alone:
                data += words[lanes, own].T.tobytes()
            if has_minima and not nibbles:
                own = minima[lanes, 2 * unit:2 * unit + 2].T
                data += (own.astype(numpy.int8) if factors else own).tobytes()
            for group in (2 * unit, 2 * unit + 1):
                data += planes(stored[lanes, group * GROUP:(group + 1) * GROUP], bits)
        result.append(numpy.frombuffer(data, numpy.uint8))
    out = numpy.zeros((len(rows), N_ROWS), f32)
    for row, x in enumerate(rows):
        quants, x_scales = quantize(x)
        for n in range(N_ROWS):
            total = None
            for begin in range(0, N_GROUPS, BLOCK // GROUP):
                partial = f32(0)
                for g in range(begin, min(begin + BLOCK // GROUP, N_GROUPS)):
                    for col in range(0, GROUP, columns):
                        at = g * GROUP + col
                        dot = int(values[n, at:at + columns] @ quants[g, col:col + columns])
                        with numpy.errstate(all="ignore"):
                            scale = scales[n, at // columns] * x_scales[g]
                        partial = fma(f32(dot), scale, partial)
                        if has_minima and (col + columns) % minimum_columns == 0:
                            of = quants[g, col + columns - minimum_columns:col + columns]
                            with numpy.errstate(all="ignore"):
                                minus_total = f32(-of.sum()) * x_scales[g]
                            partial = fma(minus_total, least[n, at // minimum_columns], partial)
                total = partial if total is None else total + partial
            out[row, n] = total
    numpy.save(FOLDER / f"{name}.npy", numpy.stack(result))
    numpy.save(FOLDER / f"{name}_out.npy", out)


def make_broad(random, rows):
    """q8_128: panels of random quants with a scale for every 128 columns, and the exact product in the order promised."""
    n_shared = 128 // GROUP
    n_scales = -(-N_GROUPS // n_shared)
    weights = random.integers(-127, 128, (N_ROWS, N_GROUPS, GROUP))
    weights.reshape(N_ROWS, -1)[:, N_COLS:] = 0
    scales = (random.standard_normal((N_ROWS, n_scales)) * 0.01).astype(numpy.float16)
    scales[7, 3] = numpy.float16(6e-8)  # subnormal
    result = []
    for panel in range(N_ROWS // LANES):
        lanes, data = slice(panel * LANES, (panel + 1) * LANES), b""
        for g in range(N_GROUPS):
            if g % n_shared == 0:
                data += scales[lanes, g // n_shared].tobytes() + bytes(2 * LANES)
            data += weights[lanes, g].reshape(LANES, GROUP // 4, 4).transpose(1, 0, 2).astype(numpy.int8).tobytes()
        result.append(numpy.frombuffer(data, numpy.uint8))
    out = numpy.zeros((len(rows), N_ROWS), f32)
    for row, x in enumerate(rows):
        quants, x_scales = quantize(x, n_shared)
        for n in range(N_ROWS):
            total = None
            for begin in range(0, N_GROUPS, BLOCK // GROUP):
                partial = f32(0)
                for g in range(begin, min(begin + BLOCK // GROUP, N_GROUPS), n_shared):
                    dot = int((weights[n, g:g + n_shared] * quants[g:g + n_shared]).sum())
                    with numpy.errstate(all="ignore"):
                        scale = f32(scales[n, g // n_shared]) * x_scales[g]
                    partial = fma(f32(dot), scale, partial)
                total = partial if total is None else total + partial
            out[row, n] = total
    numpy.save(FOLDER / "q8_128.npy", numpy.stack(result))
    numpy.save(FOLDER / "q8_128_out.npy", out)


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
    for name in FORMATS:
        make_format(name, random, rows)
    make_broad(random, rows)
    for name in LATER:
        make_format(name, random, rows)


if __name__ == "__main__":
    main()
