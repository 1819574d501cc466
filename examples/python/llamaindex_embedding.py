"""Sentence vectors for LlamaIndex: FoveaEmbedding(path) wherever an embed_model is wanted."""

from __future__ import annotations

import asyncio
from typing import Any

from llama_index.core.embeddings import BaseEmbedding
from pydantic import PrivateAttr

import fovea


class FoveaEmbedding(BaseEmbedding):
    """Vectors of length one, by an encoder, behind the model's prompts for queries and documents where it has them."""

    _model: fovea.Model = PrivateAttr()

    def __init__(self, path: str, **options: Any) -> None:
        super().__init__(model_name=path, **options)
        self._model = fovea.Model(path)

    def _get_query_embedding(self, query: str) -> list[float]:
        return self._model.encode_query(query, normalize_embeddings=True).tolist()

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return await asyncio.to_thread(self._get_query_embedding, query)

    def _get_text_embedding(self, text: str) -> list[float]:
        return self._model.encode_document(text, normalize_embeddings=True).tolist()

    def _get_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        return self._model.encode_document(texts, normalize_embeddings=True).tolist()
