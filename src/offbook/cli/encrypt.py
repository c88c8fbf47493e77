"""`offbook encrypt` and `offbook decrypt`: the data folder sealed with a key, and opened again."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from offbook.cli.options import Invocation, offline_options, pass_invocation
from offbook.cli.output import counted, print_json, printable, progress, warn

if TYPE_CHECKING:
    from offbook.model.keys import Secret
    from offbook.transfer.encrypting import Encrypted

ENCRYPT_EPILOG = """\b
Examples:
  offbook encrypt                                asks for a passphrase
  OFFBOOK_PASSPHRASE_FILE=~/.offbook-pass offbook encrypt
  offbook encrypt --key-file /media/stick/offbook.key
  offbook encrypt --change-passphrase

\b
Stop the provider first. A copy is made, compared and put in place of the plain
files, which are then overwritten; one that was killed goes on when it is run
again. From then on the provider, backup, doctor and restore need the secret:
OFFBOOK_PASSPHRASE, OFFBOOK_PASSPHRASE_FILE or OFFBOOK_KEY_FILE, or they ask.

\b
Nobody can open the folder without the secret, us included: keep a copy of it.
What is not encrypted: docs/how-to/encrypt.md.
"""


@click.command("encrypt", epilog=ENCRYPT_EPILOG)
@click.option(
    "--key-file",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="A file as the key, in place of a passphrase; made where it is missing.",
)
@click.option(
    "--change-passphrase", "is_changing", is_flag=True, help="Another passphrase or key file for an encrypted folder."
)
@offline_options
@pass_invocation
def encrypt_command(invocation: Invocation, key_file: Path | None, is_changing: bool) -> None:
    """Encrypt the data folder with a passphrase or a key file."""
    from offbook.model.keys import NEW_PASSPHRASE, PASSPHRASE
    from offbook.transfer.encrypting import change_secret, encrypt

    home = invocation.home
    _refuse_database(invocation, "its own means encrypt it")
    variable = NEW_PASSPHRASE if is_changing else PASSPHRASE
    secret = new_secret(invocation, key_file, variable)
    if is_changing:
        change_secret(home, secret)
        if invocation.is_json:
            print_json({"home": str(home.folder), "changed": True})
        else:
            click.echo(f"{home.folder} opens with the new secret only; backups of before still open with the old one")
        return
    _show(invocation, asyncio.run(encrypt(home, secret, progress=progress)))


@click.command("decrypt", epilog="\b\nExample:\n  offbook decrypt\n\n\b\nStop the provider first.")
@offline_options
@pass_invocation
def decrypt_command(invocation: Invocation) -> None:
    """Turn an encrypted data folder into a plain one."""
    from offbook.transfer.encrypting import decrypt

    _show(invocation, asyncio.run(decrypt(invocation.home, progress=progress)))


def new_secret(invocation: Invocation, key_file: Path | None, variable: str) -> Callable[[], Secret]:
    from offbook.model.errors import KeyNeeded
    from offbook.model.keys import (
        PASSPHRASE,
        PASSPHRASE_FILE,
        asked_passphrase,
        given_passphrase,
        key_file_secret,
        new_passphrase_secret,
    )

    def secret() -> Secret:
        if key_file is not None:
            return key_file_secret(key_file, invocation.home.folder, may_make=True)
        environ = invocation.environ
        given = given_passphrase(environ, invocation.home.folder) if variable == PASSPHRASE else environ.get(variable)
        if not given:
            given = asked_passphrase("New passphrase: ")
            if given is not None and asked_passphrase("The same again: ") != given:
                raise KeyNeeded("the two are not the same: nothing was changed")
        if given is None:
            also = f", or a file in {PASSPHRASE_FILE}" if variable == PASSPHRASE else ""
            raise KeyNeeded(f"give the new passphrase in {variable}{also}, or --key-file")
        return new_passphrase_secret(given)

    return secret


def _refuse_database(invocation: Invocation, what: str) -> None:
    from offbook.log.opening import refuse_database
    from offbook.model.settings import load

    refuse_database(load(invocation.home.folder, environ=invocation.environ).settings.store, what)


def _show(invocation: Invocation, done: Encrypted) -> None:
    if invocation.is_json:
        print_json(done)
        return
    state = "encrypted" if done.is_encrypted else "in plain text"
    click.echo(
        f"{done.home} is {state}: {counted(done.messages, 'message')}, compared with what was there; "
        f"{counted(done.overwritten, 'file')} of before overwritten"
    )
    if done.only_unlinked:
        what = "only removed: a hard link elsewhere leads to the same file, or it could not be written"
        warn(f"{counted(done.only_unlinked, 'file')} not overwritten, {what}")
    for path in done.still_plain:
        warn(printable(f"still in plain text: {path}"))
