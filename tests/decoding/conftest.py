"""Shared set-up of the engine's tests."""

from __future__ import annotations

import torch

torch.set_num_threads(1)  # tiny models: handing work to a second thread costs more than it saves
