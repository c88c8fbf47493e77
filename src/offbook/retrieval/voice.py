"""A query as the speaker would have said it: what is embedded.

People say "I went to the support group"; who asks says "When did Caroline go …?". In the first person the two lie
much nearer to each other (LoCoMo, dense alone, R@10: 0.60 with the names taken out, 0.63 so).
"""

from __future__ import annotations

import re

from offbook.retrieval.query import Query


def as_spoken(query: Query) -> str:
    """The query with speakers' names as "I" and "my"; without names, what it is about."""
    if not query.names:
        return query.focus if query.wants_memory else query.text
    names = "|".join(sorted((re.escape(name) for name in query.names), key=len, reverse=True))
    owned = re.sub(rf"\b(?:{names})['’]s?(?!\w)", "my", query.text, flags=re.IGNORECASE)
    return re.sub(rf"\b(?:{names})\b", "I", owned, flags=re.IGNORECASE)
