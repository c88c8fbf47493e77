"""What people have one of at a time, of the same kind: who prefers coffee *now* no longer prefers tea.

A word of change alone does not say what changed: "I prefer working from home now" is no word against tea. So only what
is surely of one kind is in these lists. What is in none needs the old one to be named ("…, not tea").
"""

from __future__ import annotations

from offbook.retrieval.words import terms

_KINDS = (
    "tea / coffee / green tea / black tea / cocoa / juice / water / sparkling water / still water / soda / mate",
    "beer / wine / red wine / white wine / cider / whisky / whiskey / gin",
    "oat milk / soy milk / almond milk / cow's milk / milk / cream",
    "red / blue / green / yellow / orange / purple / pink / black / white / grey / gray / brown / turquoise",
    "tabs / spaces",
    "tabs / two spaces / four spaces / 2 spaces / 4 spaces / eight spaces / 8 spaces",
    "single / double",
    "single quotes / double quotes",
    "dark / light",
    "dark mode / light mode",
    "short / long / brief / detailed / concise",
    "formal / informal / casual",
    "window / aisle",
    "window seats / aisle seats / the window / the aisle",
    "morning / afternoon / evening / mornings / afternoons / evenings / nights",
    "metric / imperial",
    "metric units / imperial units",
    "celsius / fahrenheit / kelvin",
    "kilometres / miles",
    "12-hour / 24-hour",
    "email / e-mail / slack / teams / phone / calls / chat / text messages / letters / signal / whatsapp / telegram",
    "train / car / bus / bike / plane / tram / trains / planes / buses / taxi / ferry",
    "cats / dogs",
    "summer / winter / spring / autumn / fall",
    "german / english / french / spanish / italian / portuguese / dutch / swedish / polish / russian / turkish / "
    "japanese / chinese / korean / american english / british english",
    "american / british / australian",
    "mysql / mariadb / postgres / postgresql / sqlite / oracle / mongodb / sql server / cockroachdb / duckdb",
    "vim / neovim / emacs / helix / nano / vs code / vscode / sublime / zed",
    "bash / zsh / fish",
    "linux / windows / macos",
    "ubuntu / debian / fedora / arch",
    "firefox / chrome / safari / edge / brave",
    "npm / yarn / pnpm / bun",
    "pip / poetry / uv / pipenv / conda",
    "pytest / unittest",
    "github / gitlab / bitbucket",
    "aws / azure / gcp / google cloud / hetzner",
    "rebase / merge / squash",
    "rebasing / merging / squashing",
    "json / yaml / toml / xml",
    "rest / graphql / grpc",
    "jira / linear / trello / asana",
    "zoom / teams / google meet",
)
_OF_KIND: dict[str, set[int]] = {}
for _number, _kind in enumerate(_KINDS):
    for _one in _kind.split(" / "):
        _OF_KIND.setdefault(" ".join(terms(_one)), set()).add(_number)


def are_alternatives(one: str, other: str) -> bool:
    """Of two different things, as stems with blanks between them."""
    return one != other and bool(_OF_KIND.get(one, set()) & _OF_KIND.get(other, set()))
