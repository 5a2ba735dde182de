"""Every error that Draftwood raises on purpose. Knows nothing else of the project.

    DraftwoodError
    ├── BadInput            the user's input cannot be served; one line says what to change (CLI exit 2)
    │   ├── BadPosition     a position outside the file
    │   ├── BadFile         missing, a directory, not UTF-8
    │   └── UnknownModel    no such name, folder or hub id
    ├── ModelError          a model cannot be had or run
    │   ├── ProvisionError  download, disk, hash, network
    │   ├── BadWeights      wrong shape, NaN, truncated, unknown architecture
    │   ├── OutOfMemory     the memory plan does not fit; carries the numbers
    │   ├── RemoteError     a configured server cannot be reached, refuses or breaks off
    │   └── TokenizerMismatch  a draft model whose tokens are not the target's; also a BadInput
    ├── Cancelled           the request became useless; not a failure
    └── WorkerDied          the process that owns the models is gone; the next request starts another

The message of each is one line that says what happened and what to do.
"""

from __future__ import annotations


class DraftwoodError(Exception):
    """Base of all."""


class BadInput(DraftwoodError):
    """The user's input cannot be served as it is."""


class BadPosition(BadInput):
    """A position outside the file."""


class BadFile(BadInput):
    """A file that is missing, a directory or not UTF-8 text."""


class UnknownModel(BadInput):
    """A model name that is neither registered, nor a folder, nor a hub id."""


class ModelError(DraftwoodError):
    """A model cannot be had or run."""


class ProvisionError(ModelError):
    """The weights could not be brought: network, disk or hash."""


class BadWeights(ModelError):
    """A weight file that cannot be used: wrong shape, NaN, truncated, unknown architecture."""


class OutOfMemory(ModelError):
    """What was asked for does not fit into the memory that is free."""


class RemoteError(ModelError):
    """A configured server cannot be reached, refuses, or breaks off."""


class TokenizerMismatch(ModelError, BadInput):
    """A draft model whose ordinary token ids differ from the target's."""


class Cancelled(DraftwoodError):
    """The request became useless while it ran."""


class WorkerDied(DraftwoodError):
    """The worker process is gone."""
