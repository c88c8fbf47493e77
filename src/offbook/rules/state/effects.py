"""What a call of a tool would change, start and stop, read from its name and its arguments."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from offbook.rules.state.exchanges import Call, strings_in
from offbook.rules.state.records import MAX_TEXT_CHARS, PendingCall, cut, words_of

READ_COMMAND_CHARS = 4000
LONGEST_ARGUMENT_CHARS = 80
"""Of an argument as it is shown: whom a mail went to matters, what it said less."""
ARGUMENTS_SHOWN = 5
LONGEST_NAME_CHARS = 120
MAX_NAMES = 16
MAX_SEGMENTS = 40

_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")


def _set(listed: str) -> frozenset[str]:
    return frozenset(listed.split())


_SHELLS = _set(
    "bash exec shell terminal sh zsh cmd powershell run_command execute_command run_terminal_cmd run_shell_command "
    "exec_command local_shell shell_command run_in_terminal execute run container.exec execute_bash computer_terminal"
)
_COMMAND_KEYS = ("command", "cmd", "script", "commandLine", "command_line", "input")
_BACKGROUND_KEYS = ("run_in_background", "background", "is_background", "isBackground", "detach", "detached")
_READS = _set(
    "get list read search fetch find view show grep glob ls query describe check lookup status recall wait poll think "
    "plan todo todos describe preview inspect ask browse screenshot snapshot download log logs output help count diff"
)
_OUTWARD = _set(
    "send sent reply post publish deploy release delete remove drop destroy pay charge transfer refund purchase "
    "buy order "
    "book reserve cancel push merge submit upload share invite notify email mail message tweet schedule approve reject "
    "subscribe unsubscribe register rollback revert restart provision migrate grant revoke archive call sms pr issue"
)
_MINOR = _set(
    "write edit create update set add insert append patch apply replace rename move copy save put commit make mkdir "
    "modify change install enable disable assign import tag store record upsert str"
)
_STARTS = _set("spawn launch start delegate subagent subagents background")
_STOPS = _set("kill stop close terminate cancel end delete remove exit release abort shutdown destroy")
_TEXT_KEYS = _set(
    "content contents text body file_text new_string old_string new_str old_str patch diff code data input html "
    "replacement newText oldText edits description prompt message markdown"
)

_SEGMENT = re.compile(r"\s*(?:&&|\|\||[;\n]|\|(?!\|))\s*")
_BEFORE_COMMAND = re.compile(r"(?:(?:sudo|time|env|nohup|setsid|exec|command|timeout\s+\S+|[A-Z_][A-Z0-9_]*=\S*)\s+)+")
_OUTWARD_COMMAND = re.compile(
    r"git (?:-C \S+ )?(?:push|merge|reset --hard|rebase|revert|branch -[dD]|tag (?!-l|--list|-n)\S|clean -)"
    r"|(?:gh|glab) \w+ (?:create|merge|close|delete|edit|comment|review|upload|run|rerun|reopen|cancel)"
    r"|(?:npm|pnpm|yarn|cargo|poetry|uv|flit|twine|gem) (?:publish|upload|push|unpublish)"
    r"|docker (?:push|rm|rmi|stop|kill|system prune|volume rm|compose down)|docker-compose down"
    r"|kubectl (?:-\S+ \S+ )*(?:apply|delete|rollout|scale|create|patch|replace|set|drain)|helm (?:install|"
    r"upgrade|uninstall|rollback)"
    r"|(?:terraform|tofu|pulumi) (?:apply|destroy|up|import)|ansible-playbook|(?:fly|flyctl|vercel|netlify|"
    r"wrangler|railway|"
    r"serverless|sls|cdk|eb|firebase|heroku|surge)\b[^\n]{0,80}?(?:deploy|publish|--prod|destroy|release|promote|"
    r"restart)"
    r"|(?:aws|gcloud|az|gsutil|doctl|s3cmd|rclone)\b[^\n]{0,120}?\b(?:deploy|put|delete|create|cp|sync|mv|rm|"
    r"update|send|publish|start|stop|terminate|run)"
    r"|curl\b(?=[^\n]{0,2000}(?:-X ?['\"]?(?:POST|PUT|PATCH|DELETE)|--request ['\"]?(?:POST|PUT|PATCH|DELETE)| "
    r"-d\b| --data| -F\b| --form| -T\b))"
    r"|https? (?:POST|PUT|PATCH|DELETE)\b"
    r"|(?:psql|mysql|sqlite3|mongosh?|redis-cli)\b[^\n]{0,400}?\b(?i:insert|update|delete|drop|alter|create|"
    r"truncate|flushall|set|del)\b"
    r"|systemctl (?:--user )?(?:start|stop|restart|enable|disable|reload)|service \S+ (?:start|stop|restart)|"
    r"crontab (?!-l)|reboot\b|shutdown\b"
    r"|(?:mail|sendmail|mutt|msmtp|swaks)\b|(?:scp|rsync|sftp)\b|dropdb\b|createdb\b|alembic (?:upgrade|downgrade)"
    r"|(?:\S*/)?\S*(?:deploy|publish|release|migrate|rollback|send|notify|backup|restore)\w*(?:\.\w+)?(?: |$)"
    r"|(?:make|just|task|npm run|pnpm run|yarn|bundle exec|rails|rake|python3? (?:-m )?\S+|php artisan|\./\S+) "
    r"(?:\S*:)?(?:deploy|publish|release|migrate|rollback|upload|send|notify|seed|db:\w+|migrate:\w+)\w*"
    r"|rm (?:-\w+ )*|shred |truncate "
)
_MINOR_COMMAND = re.compile(
    r"git (?:-C \S+ )?(?:commit|checkout -[bB]|switch -[cC]|stash|cherry-pick|init|clone|worktree (?:add|remove))"
    r"|(?:npm|pnpm|yarn) (?:install|add|remove|ci|i|uninstall)\b|(?:pip3?|uv pip|uv|poetry|cargo|go|gem|brew|"
    r"apt(?:-get)?|dnf|apk) "
    r"(?:install|add|remove|uninstall|get)\b|(?:mv|cp|mkdir|touch|chmod|chown|ln|unzip|tee) |tar -?\w*x|sed -i|patch "
    r"|docker (?:build|tag)\b"
)
_WRITES = re.compile(r"(?<![0-9&>-])>{1,2}\s*(?!&|/dev/)[\w./~$\"']")
_BACKGROUND_COMMAND = re.compile(
    r"(?<![&>|])&\s*(?:disown\b.*|echo\b.*|sleep\b.*)?(?:\n|$)|\bnohup\b|\bsetsid\b|\bdisown\b"
)
_NAMED_STARTS: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("branch", re.compile(r"\bgit (?:-C \S+ )?(?:checkout -[bB]|switch (?:-[cC]|--create)) ([^\s;&|]{1,120})")),
    ("worktree", re.compile(r"\bgit worktree add (?:-[bB] \S+ )?([^\s;&|-][^\s;&|]{0,120})")),
    ("tmux session", re.compile(r"\btmux new(?:-session)?\b(?=[^;&|\n]* -\w*d)[^;&|\n]*? -\w*s[ =]?([\w.-]{1,60})")),
    ("screen session", re.compile(r"\bscreen -\w*d\w*\s*(?:-\w*S)?\s*([\w.-]{1,60})")),
    (
        "container",
        re.compile(r"\bdocker run\b(?=[^;&|\n]* (?:-\w*d\w*|--detach)\b)[^;&|\n]*? --name[ =]([\w.-]{1,80})"),
    ),
    ("service", re.compile(r"\bsystemctl (?:--user )?start ([\w@.-]{1,80})")),
    ("lock", re.compile(r"\blockfile (?:-\S+ )*([^\s;&|]{1,120})")),
)
_DETACHED = re.compile(r"\bdocker run\b[^;&|\n]* (?:-\w*d\w*|--detach)\b")
_COMPOSE_UP = re.compile(r"\bdocker[ -]compose\b[^;&|\n]*\bup\b[^;&|\n]* (?:-d|--detach)\b")
_COMPOSE_DOWN = re.compile(r"docker[ -]compose\b[^;&|\n]*\b(?:down|stop)\b")
COMPOSE = "docker compose"
_TEMPORARY = re.compile(r"\bmktemp -\w*d")
TEMPORARY = "temporary directory"
_STOP_COMMAND = re.compile(
    r"(?:kill|pkill|killall|fuser -\w*k|npx kill-port|kill-port|docker (?:container )?(?:stop|rm|kill)|tmux "
    r"kill-\w+|screen (?=[^\n]*quit)|"
    r"systemctl (?:--user )?stop|git (?:branch -[dD]|branch --delete|worktree remove|merge|push \S+ --delete)|rm "
    r"-\w+|rm|rmdir|lsof)\b"
)
_TOKEN = re.compile(r"[^\s\"'`(){}$,;|&]+")
_IN_TOKEN = re.compile(r"[\w.-]+")
_PORT = re.compile(r"(?:--port[ =]|-p[ =]?|\bPORT=|http\.server |localhost:|127\.0\.0\.1:|0\.0\.0\.0:)(\d{2,5})\b")


class _Command(NamedTuple):
    text: str
    segments: list[str]


def pending(call: Call, seq: int) -> PendingCall:
    """What a call means, should it succeed."""
    parts = [part.lower() for part in _PART.findall(call.name[:LONGEST_NAME_CHARS])]
    command = _command(call, parts)
    names = _names(call.arguments)
    about = command.text if command else f"{' '.join(parts)} {' '.join(names)}"
    is_flagged = any(call.arguments.get(key) is True for key in _BACKGROUND_KEYS)
    common: dict[str, Any] = {
        "id": call.id,
        "name": call.name[:LONGEST_NAME_CHARS],
        "seq": seq,
        "names": names,
        "words": words_of(about),
    }
    if command is not None:
        return _pending_command(command, common, is_flagged=is_flagged)
    verbs = {*parts, *_verb_argument(call.arguments)}
    stops = names if verbs & _STOPS else []
    action, is_minor = _action(call, parts, verbs)
    label = _first_text(call.arguments, ("label", "description", "task", "prompt", "name", "title", "message"))
    is_start = is_flagged or bool(verbs & _STARTS)
    starts = f"{call.name}: {cut(label, LONGEST_NAME_CHARS)}" if label else call.name
    return PendingCall(
        **common,
        action="" if is_start else action,
        is_minor=is_minor,
        starts=starts[:MAX_TEXT_CHARS] if is_start or "agent" in parts or "task" in parts else "",
        is_background=is_flagged,
        stops=stops,
    )


def _pending_command(command: _Command, common: dict[str, Any], *, is_flagged: bool) -> PendingCall:
    done = [(one, False) for one in command.segments if _OUTWARD_COMMAND.match(one)]
    done += [(one, True) for one in command.segments if not _OUTWARD_COMMAND.match(one) and _is_minor_command(one)]
    in_order = sorted(done, key=lambda one: command.segments.index(one[0]))
    handles = [
        f"{kind} {name.strip(chr(34) + chr(39))}"
        for kind, pattern in _NAMED_STARTS
        for name in pattern.findall(command.text)
    ]
    handles += [COMPOSE] if _COMPOSE_UP.search(command.text) else []
    handles += [TEMPORARY] if _TEMPORARY.search(command.text) else []
    is_background = is_flagged or bool(_BACKGROUND_COMMAND.search(command.text) or _DETACHED.search(command.text))
    ports = [f"port {port}" for port in _PORT.findall(command.text)] if is_background else []
    return PendingCall(
        **common,
        # What runs on is not done, and what is running is told elsewhere.
        action="" if is_background and not in_order else cut("; ".join(dict.fromkeys(one for one, _ in in_order))),
        is_minor=all(is_minor for _, is_minor in in_order),
        starts=cut(command.text, LONGEST_NAME_CHARS),
        is_background=is_background,
        handles=list(dict.fromkeys((*handles, *ports)))[:MAX_NAMES],
        stops=_stopped(command.segments),
    )


def _command(call: Call, parts: list[str]) -> _Command | None:
    name = call.name.lower()
    given = _first_value(call.arguments, _COMMAND_KEYS if name in _SHELLS else _COMMAND_KEYS[:2])
    if isinstance(given, list):
        given = (
            " ".join(item for item in given[-1:] if isinstance(item, str))
            if _is_wrapped(given)
            else " ".join(map(str, given))
        )
    if not isinstance(given, str) or not (
        name in _SHELLS or {"shell", "bash", "command", "exec", "terminal"} & set(parts)
    ):
        return None
    text = given[:READ_COMMAND_CHARS].strip()
    segments = [_BEFORE_COMMAND.sub("", one, count=1) for one in _SEGMENT.split(text)[:MAX_SEGMENTS] if one]
    return _Command(text, segments)


def _is_wrapped(given: list[Any]) -> bool:
    """`["bash", "-lc", "…"]`."""
    return len(given) == 3 and isinstance(given[1], str) and re.fullmatch(r"-\w*c", given[1]) is not None


def _is_minor_command(segment: str) -> bool:
    return bool(_MINOR_COMMAND.match(segment) or _WRITES.search(segment))


def _stopped(segments: Iterable[str]) -> list[str]:
    found: list[str] = []
    for segment in segments:
        if _COMPOSE_DOWN.match(segment):
            found.append(COMPOSE)
        elif _STOP_COMMAND.match(segment):
            tokens = [token for token in _TOKEN.findall(segment)[1:] if not re.fullmatch(r"-\D*", token)]
            found += tokens + [piece for token in tokens for piece in _IN_TOKEN.findall(token)]
    return list(dict.fromkeys(token[:LONGEST_NAME_CHARS] for token in found))[: 2 * MAX_NAMES]


def _action(call: Call, parts: list[str], verbs: set[str]) -> tuple[str, bool]:
    """What was done, with the arguments that tell it from the same done elsewhere."""
    leading = next((part for part in parts if part in _READS or part in _OUTWARD or part in _MINOR), "")
    verb = next(iter(_verb_argument(call.arguments) & (_OUTWARD | _MINOR | _READS)), leading)
    if not verb or verb in _READS or (leading in _READS and verb == leading):
        return "", False
    shown: list[str] = []
    for key, text in strings_in(call.arguments):
        most = LONGEST_ARGUMENT_CHARS // 2 if key in _TEXT_KEYS and shown else LONGEST_ARGUMENT_CHARS
        if len(shown) < ARGUMENTS_SHOWN and text.strip() and not (key in _TEXT_KEYS and len(text) > 400 and shown):
            shown.append(f"{key} {cut(text[:READ_COMMAND_CHARS], most)}")
    return cut(f"{call.name}: {', '.join(shown)}" if shown else call.name), not (verbs & _OUTWARD)


def _verb_argument(arguments: Mapping[str, Any]) -> set[str]:
    """`{"action": "kill"}`: tools of several verbs take the verb as an argument."""
    given = _first_text(arguments, ("action", "method", "operation", "op", "subcommand"))
    return {part.lower() for part in _PART.findall(given[:LONGEST_NAME_CHARS])}


def _names(arguments: Mapping[str, Any]) -> list[str]:
    found = (text for _, text in strings_in(arguments) if 0 < len(text) <= LONGEST_NAME_CHARS)
    return list(dict.fromkeys(found))[:MAX_NAMES]


def _first_value(arguments: Mapping[str, Any], keys: tuple[str, ...]) -> Any:
    return next((arguments[key] for key in keys if arguments.get(key)), None)


def _first_text(arguments: Mapping[str, Any], keys: tuple[str, ...]) -> str:
    return next((value for key in keys if isinstance(value := arguments.get(key), str) and value.strip()), "")
