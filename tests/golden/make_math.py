#!/usr/bin/env python3
"""Derives the coefficients in engine/kernels/constants.h and prints them.

A near-minimax fit (Lawson 1961: least squares whose weights grow where the error is large) on a dense grid, one
coefficient at a time: the lowest is rounded to float32, then the rest are fitted again around it, so that what one
rounding loses the next ones make up for. Needs numpy and mpmath. The kernels' total error is measured by the tests.
"""
import numpy as np
from mpmath import mp, mpf

mp.prec = 120


def fit(f, weight, low, high, degree, fixed=()):
    """float32 c[0..degree] that make max |(f(x) - sum c[k] x^k)·weight(x)| over [low, high] about least."""
    n = 2000
    x = (low + high) / 2 + (high - low) / 2 * np.cos(np.pi * (np.arange(n) + 0.5) / n)
    target = np.array([f(mpf(float(v))) for v in x], dtype=np.longdouble)
    w = np.array([weight(mpf(float(v))) for v in x], dtype=np.float64)
    done = [np.float32(c) for c in fixed]
    while len(done) <= degree:
        rest = (target - sum(np.longdouble(c) * x.astype(np.longdouble)**k for k, c in enumerate(done))).astype(float)
        powers = np.stack([x**k for k in range(len(done), degree + 1)], axis=1)
        lawson = np.ones(n) / n
        for _ in range(60):
            s = np.sqrt(lawson) * w
            c, *_ = np.linalg.lstsq(powers * s[:, None] , rest * s, rcond=None)
            error = np.abs((rest - powers @ c) * w)
            lawson = lawson * (error + 1e-3 * error.max())
            lawson /= lawson.sum()
        done.append(np.float32(c[0]))
    error = (target - sum(np.longdouble(c) * x.astype(np.longdouble)**k for k, c in enumerate(done))) * w
    return done, float(np.abs(error).max())


def show(name, coefficients, error):
    print(f"// {name}: relative error of the polynomial {error:.2g} = {error * 2**24:.3f} half ulp")
    print(f"constexpr float k{name}[] = {{{', '.join(float(c).hex() + 'f' for c in coefficients)}}};")


def split(name, value, parts):
    print(f"// {name}")
    for i in range(parts):
        head = np.float32(float(value)) if i else np.float32(float(value))
        print(f"{float(head).hex()}f,  // {float(head):.9g}")
        value = value - mpf(float(head))


def main():
    half_ln2 = 0.34658
    show("Exp", *fit(lambda r: (mp.e**r - 1 - r) / r**2, lambda r: r**2 / mp.e**r, -half_ln2, half_ln2, 4))
    z_max = 0.625**2
    root = mp.sqrt
    show("Tanh", *fit(lambda z: (mp.tanh(root(z)) / root(z) - 1) / z, lambda z: z * root(z) / mp.tanh(root(z)), 1e-6, z_max, 4))
    z_max = 0.921875**2
    show("Erf", *fit(lambda z: mp.erf(root(z)) / root(z) - 1, lambda z: root(z) / mp.erf(root(z)), 1e-6, z_max, 5))
    show("Erfc", *fit(lambda a: mp.log(mp.erfc(a)), lambda a: mp.erfc(a) / mp.erf(a), 0.921875, 4.0, 6))
    z_max = 0.7855**2
    show("Sin", *fit(lambda z: (mp.sin(root(z)) / root(z) - 1) / z, lambda z: z * root(z) / mp.sin(root(z)), 1e-6, z_max, 2))
    show("Cos", *fit(lambda z: (mp.cos(root(z)) - 1 + z / 2) / z**2, lambda z: z**2 / mp.cos(root(z)), 1e-6, z_max, 2))
    show("Log1p", *fit(lambda u: mp.log(1 + u) / u, lambda u: u / mp.log(1 + u), 1e-6, 1.0, 9, fixed=(1.0,)))
    split("ln 2", mp.log(2), 2)
    split("1 / ln 2", 1 / mp.log(2), 1)
    split("pi / 2", mp.pi / 2, 3)
    split("2 / pi", 2 / mp.pi, 1)
    split("sqrt(1/2)", mp.sqrt(0.5), 1)
    split("sqrt(2/pi)", mp.sqrt(2 / mp.pi), 1)
    split("0.044715 sqrt(2/pi)", mpf("0.044715") * mp.sqrt(2 / mp.pi), 1)


if __name__ == "__main__":
    main()
