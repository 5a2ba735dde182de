"""`draftwood serve`: the language server on the command line."""

from __future__ import annotations

import click


@click.command()
@click.option("--stdio", is_flag=True, help="Speak over standard input and output (the default).")
@click.option("--tcp", metavar="HOST:PORT", help="Listen on an address instead.")
def serve(stdio: bool, tcp: str | None) -> None:
    """Run the language server for an editor."""
    from lsp_server.server import serve_stdio, serve_tcp

    if tcp is None:
        serve_stdio()
        return
    if stdio:
        raise click.UsageError("give --stdio or --tcp, not both")
    host, _, port = tcp.rpartition(":")
    if not host or not port.isdecimal() or not 0 <= int(port) < 65536:
        raise click.BadParameter(f"{tcp!r} is not HOST:PORT, for example 127.0.0.1:2087", param_hint="--tcp")
    serve_tcp(host.strip("[]"), int(port))
