"""Provision the model that the JSON in argv[1] describes, in a process of its own: some tests kill it."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from tests.decoding.models.provisioners import Plan, provisioner

if __name__ == "__main__":
    description = json.loads(sys.argv[1])
    plan = Plan(**{**description, "links": tuple(map(tuple, description["links"]))})
    folder = provisioner(Path(sys.argv[2]), plan).ensure("tiny", lambda progress: print(progress.message, flush=True))
    print(folder.path, flush=True)
