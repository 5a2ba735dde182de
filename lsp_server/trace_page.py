"""The trace of one completion as a self-contained page that a person can step through.

Knows `trace.py` and one HTML template next to this module. Nothing in the page is loaded from elsewhere.
"""

from __future__ import annotations

import html
import json
from dataclasses import asdict
from importlib.resources import files
from pathlib import Path

from decoding.messages import Completion
from lsp_server.trace import Trace

_TEMPLATE = "trace_page.html"


def write_page(trace: Trace, completion: Completion, path: Path) -> None:
    """Write the page. Raises OSError where `path` cannot be written."""
    path.write_text(page(trace, completion), encoding="utf-8")


def page(trace: Trace, completion: Completion) -> str:
    """The page as text: the template with the trace as JSON in it."""
    stats = completion.stats
    title = f"{completion.model} on {completion.runtime}"
    data = {
        "summary": {
            "tokens": stats.tokens,
            "passes": stats.steps,
            "tokens a pass": round(stats.mean_accepted, 2),
            "tokens/s": round(stats.tokens_per_second, 1),
            "stopped at": completion.stop_reason,
            "drafter": completion.drafter,
            "constraint": completion.constraint,
        },
        "steps": [asdict(step) for step in trace.steps],
    }
    # "</script>" inside a token must not end the script element.
    encoded = json.dumps(data, ensure_ascii=False).replace("<", "\\u003c").replace("\u2028", "\\u2028")
    template = files("lsp_server").joinpath(_TEMPLATE).read_text(encoding="utf-8")
    return template.replace("{{TITLE}}", html.escape(title)).replace("{{DATA}}", encoded)
