"""`offbook model install NAME|FOLDER`: an embedding model with a folder of its own, and the settings that name it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from offbook.cli.options import Invocation
from offbook.cli.output import print_json, printable, progress

if TYPE_CHECKING:
    from offbook.models.onnx_install import Installed


@contextmanager
def shown_progress(total: int) -> Iterator[Callable[[int, int], None]]:
    """Given how many bytes are done, it shows how many more that are."""
    shown = 0
    with progress("installing", total) as advance:

        def show(done: int, _total: int) -> None:
            nonlocal shown
            advance(done - shown)
            shown = done

        yield show


def install_embedder(
    invocation: Invocation, model: str, source: Path | None, *, is_used: bool, sha256: str | None, **how: Any
) -> None:
    from offbook.models.onnx_install import KNOWN, install_folder, install_known

    invocation.home.prepare()
    models = invocation.home.models
    known = KNOWN.get(model)
    if known is not None:
        if sha256 is not None or any(value is not None for value in how.values()):
            raise click.UsageError(f"{model} is known: --sha256, --name, --pooling and prefixes are for a FOLDER")
        if source is not None and not source.is_dir():
            raise click.UsageError("--from has to be the folder with its files")
        with shown_progress(known.size_bytes) as show:
            installed = install_known(known, models, source=source, progress=show, environ=invocation.environ)
    else:
        if source is not None:
            raise click.UsageError("--from is for a model that Offbook knows: name the folder itself")
        folder = Path(model).expanduser()
        if not folder.is_dir():
            raise click.UsageError(f"{model!r} is no folder, and no model that Offbook knows: {', '.join(KNOWN)}")
        installed = install_folder(folder, models, graph_sha256=sha256, **how)
    is_changed = is_used and use(invocation, installed)
    if invocation.is_json:
        print_json({"folder": installed.folder, "model": installed.setting, "isUsed": is_used, **_told(installed)})
        return
    manifest = installed.manifest
    checked = "its SHA-256 is right" if manifest.is_pinned else "its SHA-256 is written down as it is now"
    click.echo(printable(f"{installed.folder}\ninstalled as {installed.setting}, {checked}"))
    if is_changed:
        click.echo(
            printable(
                f"{invocation.home.config} names it now: start the provider again, and it embeds all that was said"
            )
        )
        click.echo("with it, beside the old vectors, which serve until then; `offbook status` shows how far it is")
    elif not is_used:
        click.echo(
            printable(
                f'to use it, write model = "{installed.setting}" and dimensions = {manifest.dimensions} under '
                f"[embedding] in {invocation.home.config}"
            )
        )


def use(invocation: Invocation, installed: Installed) -> bool:
    """Names it in config.toml; whether that was changed."""
    from offbook.client.config_files.toml import with_values
    from offbook.model.settings.sources import read_toml

    path = invocation.home.config
    read_toml(path)  # says where it is wrong
    before = path.read_bytes().decode("utf-8-sig") if path.exists() else ""
    values = {"model": installed.setting, "dimensions": installed.manifest.dimensions}
    after = with_values(before, "embedding", values)
    if after == before:
        return False
    unfinished = path.with_name(f".{path.name}.new")
    unfinished.write_text(after, encoding="utf-8")
    unfinished.chmod(path.stat().st_mode & 0o777 if path.exists() else 0o600)
    unfinished.replace(path)
    return True


def _told(installed: Installed) -> dict[str, Any]:
    from offbook.models.onnx_embedder import fingerprint_of

    manifest = installed.manifest
    return {
        "dimensions": manifest.dimensions,
        "fingerprint": fingerprint_of(manifest),
        "isPinned": manifest.is_pinned,
        "files": manifest.files,
    }
