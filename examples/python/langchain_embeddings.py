"""Sentence vectors for LangChain: FoveaEmbeddings(path) wherever an Embeddings is wanted."""

from __future__ import annotations

from langchain_core.embeddings import Embeddings

import fovea


class FoveaEmbeddings(Embeddings):
    """Vectors of length one, by an encoder."""

    def __init__(self, path: str) -> None:
        self.model = fovea.Model(path)

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Return a vector for each text, behind the model's prompt for what is searched where it has one."""
        return self.model.encode_document(texts, normalize_embeddings=True).tolist()

    def embed_query(self, text: str) -> list[float]:
        """Return the vector of one text, behind the model's prompt for queries where it has one."""
        return self.model.encode_query(text, normalize_embeddings=True).tolist()
