"""Attention models on CPUs, from one flat file, with the same bits on every CPU.

>>> import fovea
>>> model = fovea.Model("smollm2.fovea")          # or a Hugging Face folder, or a GGUF file
>>> model.generate("The capital of France is", max_new_tokens=8)
>>> fovea.Model("minilm/").encode(["a text", "another"]).shape
(2, 384)
>>> fovea.attend(query, key, value, causal=True)  # float32 arrays [batch, heads, seq, dim]

Arrays go in and out without copies: whatever has the buffer protocol or DLPack is read where it is, and ``out=`` takes
an array of the caller's. Every pass releases the GIL. Ctrl-C ends it after the step that runs: a product of one layer,
or all of an ``attend``.
"""

from ._attention import AttentionPattern, MultiheadAttention, attend
from ._chat import ChatAnswer, ChatStream, ToolCall
from ._convert import convert, convert_adapter
from ._fovea import Cancelled, FullError, default_threads, isa_names, numerics_version
from ._fovea import version as __version__
from ._heads import FoundAnswer, Label, LabelledWord, Ranked
from ._model import Model
from ._plan import Limits, Plan, PlanPart
from ._session import Cache, CachePool, Session, Step, Workspace
from ._speech import SpeechSegment, SpeechWord, Transcript
from ._translation import Translation

__all__ = [
    "AttentionPattern",
    "Cache",
    "CachePool",
    "Cancelled",
    "ChatAnswer",
    "ChatStream",
    "FoundAnswer",
    "FullError",
    "Label",
    "LabelledWord",
    "Limits",
    "Model",
    "MultiheadAttention",
    "Plan",
    "PlanPart",
    "Ranked",
    "Session",
    "SpeechSegment",
    "SpeechWord",
    "Step",
    "ToolCall",
    "Transcript",
    "Translation",
    "Workspace",
    "__version__",
    "attend",
    "convert",
    "convert_adapter",
    "default_threads",
    "isa_names",
    "numerics_version",
]
