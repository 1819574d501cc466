"""The options of a text that a model writes, declared once for every method that writes one."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from ._arrays import Ids
from ._chat import Schema

if TYPE_CHECKING:
    from typing import Concatenate, ParamSpec

    Options = ParamSpec("Options")

Made = TypeVar("Made")


def text_options(
    prompt: str | Ids,
    *,
    max_new_tokens: int | None = None,
    temperature: float = 0.0,
    top_k: int = 0,
    top_p: float = 1.0,
    min_p: float = 0.0,
    repeat_penalty: float = 1.0,
    repeat_last_n: int = 64,
    frequency_penalty: float = 0.0,
    presence_penalty: float = 0.0,
    logit_bias: Mapping[int, float] | None = None,
    seed: int = 0,
    dry_multiplier: float = 0.0,
    dry_base: float = 1.75,
    dry_allowed_length: int = 2,
    top_n_sigma: float = 0.0,
    typical_p: float = 1.0,
    xtc_probability: float = 0.0,
    xtc_threshold: float = 0.1,
    mirostat: int = 0,
    mirostat_tau: float = 5.0,
    mirostat_eta: float = 0.1,
    min_tokens: int = 0,
    stop: str | Sequence[str] | None = None,
    special: bool = False,
    speculate: int = 0,
    schema: Schema | None = None,
    grammar: str | None = None,
    regex: str | None = None,
    compact: bool = False,
) -> dict[str, Any]:
    """Return the options by their names.

    prompt: a text, or ids as they are.
    max_new_tokens: at most; a text also ends where the model or the context ends it.
    temperature: 0 takes the likeliest. top_k: among the k likeliest (0: all). top_p: among the fewest that reach
        this probability. min_p: without what is less than this times as likely as the first.
    repeat_penalty: above 1, the last repeat_last_n tokens (-1: all) become less likely. seed: one seed gives one text,
        on every machine.
    frequency_penalty, presence_penalty: taken from the logit of a token of the continuation, for each time it came
        or once. logit_bias: what is added to tokens' logits, by id; -inf forbids one.
    dry_multiplier: above 0, what goes on with a repetition of dry_allowed_length tokens or more becomes less likely, by
        dry_base for each token more. top_n_sigma: among logits within so many standard deviations of the highest.
        typical_p: among the fewest of nearly average surprise that reach this probability. xtc_probability: how often
        all but the last of the tokens that are xtc_threshold likely are left out. mirostat: 2 aims at a surprise of
        mirostat_tau bits, which it follows by mirostat_eta. min_tokens: before which no token ends the text.
    stop: texts that end the continuation, which has all before them.
    special: read special tokens in the prompt, and show those that come.
    speculate: tokens guessed ahead and verified in one pass: the same text, sooner where it repeats.
    schema, grammar, regex: one of them, which the whole continuation fits unless max_new_tokens or the context cut
        it: a JSON schema (a dict, its text, a pydantic model), a grammar as llama.cpp has them, an expression.
        compact: JSON without spaces between its parts.
    """
    return dict(locals())


_SIGNATURE = inspect.signature(text_options)


def options_of(prompt: Any, given: dict[str, Any]) -> dict[str, Any]:
    """Return all options of a text. TypeError for a name that there is not."""
    for name in given:
        if name not in _SIGNATURE.parameters:
            known = ", ".join(list(_SIGNATURE.parameters)[1:])
            raise TypeError(f"options: expected some of {known}, got {name}")
    return text_options(prompt, **given)


def takes_options(
    of: Callable[Options, object], **defaults: Any
) -> Callable[[Callable[..., Made]], Callable[Concatenate[Any, Options], Made]]:
    """Give a method `of`'s arguments: for type checkers, in its signature and in its documentation."""

    def decorated(method: Callable[..., Made]) -> Callable[Concatenate[Any, Options], Made]:
        own = next(iter(inspect.signature(method).parameters.values()))
        theirs = inspect.signature(of).parameters.values()
        shown = [own, *(one.replace(default=defaults.get(one.name, one.default)) for one in theirs)]
        gives = inspect.signature(method).return_annotation
        method.__signature__ = inspect.Signature(shown, return_annotation=gives)  # type: ignore[attr-defined]
        arguments = inspect.getdoc(of) or ""
        method.__doc__ = f"{inspect.cleandoc(method.__doc__ or '')}\n\n{arguments.partition(chr(10) * 2)[2]}"
        return method

    return decorated
