"""Messages as the APIs of models take them, for who writes an integration: both shapes, what a model would refuse, and
the texts that stand where a shape asks for one."""

from __future__ import annotations

from offbook.context.provider_shapes import OPENING, to_anthropic, to_openai
from offbook.context.replayable import QUOTED_RESULT, THOUGHT
from offbook.context.validity import faults
from offbook.ingest.frames import is_framed

__all__ = ["OPENING", "QUOTED_RESULT", "THOUGHT", "faults", "is_framed", "to_anthropic", "to_openai"]
