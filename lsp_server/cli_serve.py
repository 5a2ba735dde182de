"""`draftwood serve`: the language server on the command line."""

from __future__ import annotations

import sys

import click

from decoding.errors import BadInput


@click.command()
@click.option("--stdio", is_flag=True, help="Speak over standard input and output (the default).")
@click.option("--tcp", metavar="HOST:PORT", help="Listen on an address instead.")
def serve(stdio: bool, tcp: str | None) -> int:
    """Run the language server for an editor."""
    if stdio and tcp is not None:
        raise click.UsageError("give --stdio or --tcp, not both")
    host, _, port = (tcp or "").rpartition(":")
    if tcp is not None and (not host or not port.isdecimal() or int(port) > 65535):
        raise click.BadParameter(f"{tcp!r} is not HOST:PORT, for example 127.0.0.1:2087", param_hint="--tcp")
    if tcp is None and (sys.stdin is None or sys.stdout is None):
        closed = "input" if sys.stdin is None else "output"
        raise BadInput(f"standard {closed} is closed: an editor starts this and talks over both, or give --tcp")

    from lsp_server.server import serve_stdio, serve_tcp

    return serve_stdio() if tcp is None else serve_tcp(host.strip("[]"), int(port))
