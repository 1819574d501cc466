"""Vectors of texts as sentence-transformers gives them: python embed.py FOLDER TEXT..."""

import sys

import fovea

model = fovea.Model(sys.argv[1])
vectors = model.encode(sys.argv[2:], normalize_embeddings=True)
for text, likeness in zip(sys.argv[2:], vectors @ vectors[0]):
    print(f"{likeness:.4f}  {text}")
