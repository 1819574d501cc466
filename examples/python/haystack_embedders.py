"""Sentence vectors as components of Haystack's pipelines: one for documents, one for the query."""

from dataclasses import replace

from haystack import Document, component

import fovea


@component
class FoveaDocumentEmbedder:
    """Documents in, the same with vectors of length one out."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._model = fovea.Model(path)

    @component.output_types(documents=list[Document])
    def run(self, documents: list[Document]) -> dict[str, list[Document]]:
        """Give each document the vector of its text, behind the model's prompt for documents where it has one."""
        vectors = self._model.encode_document([one.content or "" for one in documents], normalize_embeddings=True)
        return {"documents": [replace(one, embedding=row.tolist()) for one, row in zip(documents, vectors)]}


@component
class FoveaTextEmbedder:
    """A query in, its vector of length one out."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._model = fovea.Model(path)

    @component.output_types(embedding=list[float])
    def run(self, text: str) -> dict[str, list[float]]:
        """Return the vector of one text, behind the model's prompt for queries where it has one."""
        return {"embedding": self._model.encode_query(text, normalize_embeddings=True).tolist()}
