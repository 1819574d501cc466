"""Vectors of texts as sentence-transformers gives them: python embed.py FOLDER TEXT..."""

import sys

import fovea

if len(sys.argv) < 3:
    sys.exit("usage: embed.py FOLDER TEXT...")
model = fovea.Model(sys.argv[1])
vectors = model.encode(sys.argv[2:], normalize_embeddings=True)
for text, likeness in zip(sys.argv[2:], vectors @ vectors[0]):
    print(f"{likeness:.4f}  {text}")
