"""Sentence vectors as a step of scikit-learn: make_pipeline(SentenceVectors(path), LogisticRegression())."""

from __future__ import annotations

from typing import Any

from sklearn.base import BaseEstimator, TransformerMixin

import fovea


class SentenceVectors(TransformerMixin, BaseEstimator):
    """Texts (a list, a pandas Series) in, an array [n, d_model] out. There is nothing to fit."""

    def __init__(self, path: str) -> None:
        self.path = path

    def fit(self, X: Any, y: Any = None) -> SentenceVectors:  # noqa: N803
        """Do nothing."""
        return self

    def transform(self, X: Any) -> Any:  # noqa: N803
        """Return a vector for each text."""
        return fovea.Model(self.path).encode(X, normalize_embeddings=True)
