"""Data: the names under which people know a module or what is in it, and the line that imports each.

Nothing else is imported by guess.
"""

from __future__ import annotations

_STANDARD_LIBRARY = """
    abc argparse array ast asyncio base64 bisect calendar collections concurrent contextlib copy csv ctypes
    dataclasses datetime decimal difflib email enum fractions functools gc getpass glob gzip hashlib heapq hmac html
    http importlib inspect io itertools json logging math mimetypes multiprocessing operator os pathlib pickle platform
    pprint queue random re secrets select shlex shutil signal socket sqlite3 ssl statistics string struct subprocess
    sys sysconfig tempfile textwrap threading time timeit tomllib traceback types typing unicodedata unittest urllib
    uuid warnings weakref xml zipfile zlib zoneinfo
"""
_OTHERS = """
    aiohttp attrs django fastapi flask httpx jax numpy pandas pydantic pytest requests scipy sklearn sqlalchemy torch
    transformers yaml
"""
MODULES = {
    **{name: f"import {name}" for name in (_STANDARD_LIBRARY + _OTHERS).split()},
    "alt": "import altair as alt",
    "jnp": "import jax.numpy as jnp",
    "np": "import numpy as np",
    "nx": "import networkx as nx",
    "pd": "import pandas as pd",
    "pl": "import polars as pl",
    "plt": "import matplotlib.pyplot as plt",
    "px": "import plotly.express as px",
    "sns": "import seaborn as sns",
    "tf": "import tensorflow as tf",
}
"""What is read through a dot."""

_MEMBERS = """
    abc: ABC abstractmethod
    collections: ChainMap Counter OrderedDict defaultdict deque namedtuple
    collections.abc: Callable Iterable Iterator Mapping MutableMapping Sequence
    contextlib: contextmanager suppress
    dataclasses: dataclass
    decimal: Decimal
    enum: Enum IntEnum StrEnum
    fractions: Fraction
    functools: cached_property lru_cache partial wraps
    pathlib: Path
    types: SimpleNamespace
    typing: Any ClassVar Literal NamedTuple Optional Protocol TypeVar TypedDict Union
    uuid: uuid4
"""
MEMBERS = {
    name: f"from {module.strip()} import {name}"
    for module, names in (line.split(":") for line in _MEMBERS.strip().splitlines())
    for name in names.split()
}
"""What is read by itself."""

WELL_KNOWN = {**MODULES, **MEMBERS}
