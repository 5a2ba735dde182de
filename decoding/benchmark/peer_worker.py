"""The process of one peer: reads requests as JSON lines, answers with token ids and times.

Stands alone: it imports nothing of this project, since it may run in another interpreter. Arguments: KIND MODEL
THREADS. Prefill is the time to the first token, decoding the time of all further ones, scaled to all of them. A peer
that reads no file of ours converts one when it starts for the first time, and keeps it beside the model.
"""

from __future__ import annotations

import importlib.metadata
import json
import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

Generate = Callable[[list[int], int, float, Callable[[int], None]], None]
"""(prompt ids, tokens, temperature, called with every token as it comes)."""


def main() -> None:
    """Serve until the input ends."""
    kind, model, threads = sys.argv[1], sys.argv[2], int(sys.argv[3])
    family, _, variant = kind.partition("-")
    try:
        generate, version = _FAMILIES[family](model, threads, variant == "lookup")
    except Exception as error:  # noqa: BLE001 - the boundary of the process: whatever is missing is reported
        _say({"error": f"{type(error).__name__}: {error}".splitlines()[0]})
        return
    _say({"version": version})
    for line in sys.stdin:
        request = json.loads(line)
        try:
            _say(_timed(generate, request))
        except Exception as error:  # noqa: BLE001 - the boundary of the process
            _say({"error": f"{type(error).__name__}: {error}".splitlines()[0]})
            return


def _say(message: dict[str, Any]) -> None:
    print(json.dumps(message), flush=True)


def _timed(generate: Generate, request: dict[str, Any]) -> dict[str, Any]:
    ids: list[int] = []
    times: list[float] = []

    def took(token: int) -> None:
        ids.append(token)
        times.append(time.perf_counter())

    started = time.perf_counter()
    generate(request["prompt_ids"], request["tokens"], request["temperature"], took)
    ids, times = ids[: request["tokens"]], times[: request["tokens"]]
    further = times[-1] - times[0]
    decode = further * len(ids) / (len(ids) - 1) if len(ids) > 1 else 0.0
    return {"token_ids": ids, "prefill_ms": 1e3 * (times[0] - started), "decode_ms": 1e3 * decode}


def _transformers(model: str, threads: int, lookup: bool) -> tuple[Generate, str]:
    import torch
    import transformers

    torch.set_num_threads(threads)
    network = transformers.AutoModelForCausalLM.from_pretrained(model, dtype=torch.bfloat16).eval()

    class Streamer:
        def __init__(self, took: Callable[[int], None]) -> None:
            self.took = took
            self.prompt = True

        def put(self, value: Any) -> None:
            if self.prompt:
                self.prompt = False
                return
            for token in value.reshape(-1).tolist():
                self.took(token)

        def end(self) -> None:
            return None

    def generate(prompt: list[int], tokens: int, temperature: float, took: Callable[[int], None]) -> None:
        choice = {"do_sample": True, "temperature": temperature} if temperature else {"do_sample": False}
        extra = {"prompt_lookup_num_tokens": 8} if lookup else {}
        with torch.inference_mode():
            network.generate(torch.tensor([prompt]), max_new_tokens=tokens, streamer=Streamer(took), **choice, **extra)

    return generate, importlib.metadata.version("transformers")


def _llama(model: str, threads: int, lookup: bool) -> tuple[Generate, str]:
    from llama_cpp import Llama
    from llama_cpp.llama_speculative import LlamaPromptLookupDecoding

    draft = LlamaPromptLookupDecoding(num_pred_tokens=6) if lookup else None
    contexts = {"n_ctx": 2304, "n_threads": threads, "n_threads_batch": threads}
    # Without the logits of every row it refuses a draft: it has nothing to compare the drafted tokens with.
    llama = Llama(model, draft_model=draft, logits_all=lookup, verbose=False, **contexts)

    def generate(prompt: list[int], tokens: int, temperature: float, took: Callable[[int], None]) -> None:
        llama.reset()
        for count, token in enumerate(llama.generate(prompt, temp=temperature, top_k=0, top_p=1.0, min_p=0.0), 1):
            took(token)
            if count >= tokens or token == llama.token_eos():
                break

    return generate, importlib.metadata.version("llama-cpp-python")


def _ctranslate2(model: str, threads: int, lookup: bool) -> tuple[Generate, str]:
    import ctranslate2
    from ctranslate2.converters import TransformersConverter
    from tokenizers import Tokenizer

    def convert(path: Path) -> None:
        TransformersConverter(model, low_cpu_mem_usage=True).convert(str(path), quantization="int8")

    folder = _converted(Path(model) / "ctranslate2-int8", convert)
    generator = ctranslate2.Generator(str(folder), device="cpu", intra_threads=threads, inter_threads=1)
    tokenizer = Tokenizer.from_file(str(Path(model) / "tokenizer.json"))

    def generate(prompt: list[int], tokens: int, temperature: float, took: Callable[[int], None]) -> None:
        choice = {"sampling_topk": 0, "sampling_temperature": temperature} if temperature else {"sampling_topk": 1}
        words = [tokenizer.id_to_token(token) for token in prompt]
        for step in generator.generate_tokens(words, max_length=tokens, **choice):
            took(step.token_id)

    return generate, importlib.metadata.version("ctranslate2")


def _converted(path: Path, convert: Callable[[Path], None]) -> Path:
    """What `convert` wrote to `path`, now or in an earlier run; half a conversion never gets that name."""
    if not path.exists():
        partial = path.with_name(f"{path.name}.partial")
        if partial.is_dir():
            shutil.rmtree(partial)
        convert(partial)
        partial.rename(path)
    return path


def _write_q8_gguf(source: Path, target: Path) -> None:
    """The weights of a GGUF file in 8 bits (Q8_0), which more readers understand than the mixed 4-bit kinds."""
    from gguf import GGMLQuantizationType, GGUFReader, GGUFValueType, GGUFWriter, LlamaFileType, quants

    reader = GGUFReader(source)
    fields = {name: field for name, field in reader.fields.items() if not name.startswith("GGUF.")}
    writer = GGUFWriter(target, fields.pop("general.architecture").contents())
    fields.pop("general.file_type", None)
    writer.add_file_type(LlamaFileType.MOSTLY_Q8_0)
    for name, field in fields.items():
        inner = field.types[-1] if field.types[0] == GGUFValueType.ARRAY else None
        writer.add_key_value(name, field.contents(), field.types[0], sub_type=inner)
    eight_bits = GGMLQuantizationType.Q8_0
    for tensor in reader.tensors:
        values = quants.dequantize(tensor.data, tensor.tensor_type)
        if values.ndim > 1:
            writer.add_tensor(tensor.name, quants.quantize(values, eight_bits), raw_dtype=eight_bits)
        else:
            writer.add_tensor(tensor.name, values.astype("float32"))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _openvino(model: str, threads: int, lookup: bool) -> tuple[Generate, str]:
    import numpy as np
    import openvino as ov
    import openvino_genai as genai

    source = Path(model)
    file = _converted(source.with_name("peer-q8_0.gguf"), lambda path: _write_q8_gguf(source, path))
    extra = {"prompt_lookup": True} if lookup else {}
    pipeline = genai.LLMPipeline(str(file), "CPU", INFERENCE_NUM_THREADS=threads, **extra)

    def generate(prompt: list[int], tokens: int, temperature: float, took: Callable[[int], None]) -> None:
        config = genai.GenerationConfig()
        config.max_new_tokens = tokens
        config.do_sample = temperature > 0
        if temperature > 0:
            config.temperature = temperature
        if lookup:
            config.num_assistant_tokens = 5
            config.max_ngram_size = 3

        class Streamer(genai.StreamerBase):  # type: ignore[misc]
            def write(self, token: Any) -> Any:
                for one in token if isinstance(token, list) else [token]:
                    took(one)
                return genai.StreamingStatus.RUNNING

            def end(self) -> None:
                return None

        ids = ov.Tensor(np.array([prompt], dtype=np.int64))
        mask = ov.Tensor(np.ones((1, len(prompt)), dtype=np.int64))
        pipeline.generate(genai.TokenizedInputs(ids, mask), config, Streamer())

    return generate, importlib.metadata.version("openvino-genai")


_FAMILIES = {
    "transformers": _transformers,
    "llama": _llama,
    "openvino": _openvino,
    "ctranslate2": _ctranslate2,
}

if __name__ == "__main__":
    main()
