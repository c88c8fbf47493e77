"""What was said on each day, and what models were used for it."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

from offbook.log.sql.connection import Connection, reading
from offbook.log.sql.recall_reads import agent_number
from offbook.log.sql.summary_reads import usage_of
from offbook.model.overview import Day

DAY_MICROS = 86_400_000_000
EPOCH = date(1970, 1, 1)

_MESSAGES = f"""
SELECT ts / {DAY_MICROS}, count(*), sum(m.chars)
FROM sessions s JOIN messages m ON m.place BETWEEN (s.session << 32) AND (s.session << 32) + 4294967295
WHERE s.agent = ? AND m.ts >= ? AND m.erased IS NULL
GROUP BY 1
"""  # noqa: S608
_USED = """
SELECT day, sum(calls), sum(input_tokens), sum(cached_tokens), sum(output_tokens), sum(dollars)
FROM spending WHERE agent = ? AND day >= ? GROUP BY day
"""


def activity(connection: Connection, agent_id: str, since: date) -> list[Day]:
    agent = agent_number(connection, agent_id)
    if agent is None:
        return []
    begins = int(datetime(since.year, since.month, since.day, tzinfo=UTC).timestamp()) * 1_000_000
    with reading(f"the days of agent {agent_id!r}"):
        said = {
            (EPOCH + timedelta(days=number)).isoformat(): (messages, chars)
            for number, messages, chars in connection.execute(_MESSAGES, (agent, begins))
        }
        used = {day: row for day, *row in connection.execute(_USED, (agent, since.isoformat()))}
    days = []
    for day in sorted(said.keys() | used.keys()):
        messages, chars = said.get(day, (0, 0))
        calls, *usage = used.get(day, (0, 0, 0, 0, 0.0))
        days.append(Day(day=day, messages=messages, chars=chars, model_calls=calls, usage=usage_of(*usage)))
    return days
