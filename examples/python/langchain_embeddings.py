"""Sentence vectors for LangChain: FoveaEmbeddings(path) wherever an Embeddings is wanted."""

from __future__ import annotations

from langchain_core.embeddings import Embeddings

import fovea


class FoveaEmbeddings(Embeddings):
    """Vectors of length one, by an encoder."""

    def __init__(self, path: str) -> None:
        self.model = fovea.Model(path)

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Return a vector for each text."""
        return self.vectors(texts, "document")

    def embed_query(self, text: str) -> list[float]:
        """Return the vector of one text."""
        return self.vectors([text], "query")[0]

    def vectors(self, texts: list[str], task: str) -> list[list[float]]:
        """Embed texts, behind the model's prompt for that task where it has one."""
        name = task if task in self.model.prompts else None
        return self.model.encode(texts, prompt_name=name, normalize_embeddings=True).tolist()
