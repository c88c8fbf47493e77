"""Contexts in the shapes that providers of models take: what a host can send as it is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from offbook.compression.provider_shapes.anthropic import to_anthropic
from offbook.compression.provider_shapes.openai import to_openai
from offbook.types import Message

SHAPES: dict[str, Callable[[Sequence[Message]], Any]] = {"openai": to_openai, "anthropic": to_anthropic}

__all__ = ["SHAPES", "to_anthropic", "to_openai"]
