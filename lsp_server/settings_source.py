"""Where the current settings come from: the project's file, the editor's start options, what the editor says later.

Knows the protocol's configuration messages; the meaning of settings is `settings`'.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lsprotocol import types
from pygls.exceptions import JsonRpcException
from pygls.uris import to_fs_path

from lsp_server.protocol import Server
from lsp_server.settings import Settings, from_pyproject, read

log = logging.getLogger(__name__)

_PULL_SECONDS = 2.0


class SettingsSource:
    """Reads settings again whenever somebody says that they changed."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._root: Path | None = None
        self._editor: Mapping[str, Any] = {}
        self._pulls = False
        self._warned: set[str] = set()
        self.current = Settings()

    def begin(self, params: types.InitializeParams) -> Settings:
        """From what the client said when it started us."""
        self._root = _root(params)
        workspace = params.capabilities.workspace
        self._pulls = bool(workspace and workspace.configuration)
        if isinstance(params.initialization_options, Mapping):
            self._editor = params.initialization_options
        return self._read()

    async def pull(self) -> Settings:
        """Asks the client, if it can be asked. What it does not answer in time stays as it is."""
        if self._pulls:
            section = types.ConfigurationParams([types.ConfigurationItem(section="draftwood")])
            try:
                answer = await asyncio.wait_for(
                    self._server.workspace_configuration_async(section), timeout=_PULL_SECONDS
                )
            except (TimeoutError, JsonRpcException):
                log.info("the client did not say its configuration")
            else:
                self._take(answer[0] if answer else None)
        return self._read()

    async def changed(self, settings: Any) -> Settings:
        """The client said that its configuration changed, with or without saying how."""
        if isinstance(settings, Mapping) and settings:
            self._take(settings)
            return self._read()
        return await self.pull()

    def _take(self, settings: Any) -> None:
        if isinstance(settings, Mapping) and settings:
            self._editor = settings

    def _read(self) -> Settings:
        project = from_pyproject(self._root, self._warn) if self._root is not None else {}
        self.current = read([self._editor, project], self._warn)
        return self.current

    def _warn(self, message: str) -> None:
        """Shows a warning, each once."""
        if message not in self._warned:
            self._warned.add(message)
            log.warning("%s", message)
            self._server.window_show_message(
                types.ShowMessageParams(types.MessageType.Warning, f"Draftwood: {message}")
            )


def _root(params: types.InitializeParams) -> Path | None:
    uris = [folder.uri for folder in params.workspace_folders or []]
    uri = uris[0] if uris else params.root_uri
    path = to_fs_path(uri) if uri else params.root_path
    return Path(path) if path else None
