"""`convert --dtype raw` makes what the safetensors library reads, losing nothing; `restore` gives it back."""

import json
import mmap
import os
import struct
import tempfile

import numpy
from gguf import GGUFEndian, GGUFReader
from safetensors import safe_open

from decoders import little
from program import run, same, sha256

# ggml types that safetensors has too.
PLAIN = {"F64", "F32", "F16", "BF16", "I64", "I32", "I16", "I8"}
NUMPY = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "|i1"}
RESERVED = "__gguf2st__"


def expected(tensor) -> tuple[str, list[int]]:
    """The dtype and shape that a tensor has to get."""
    kind, shape = tensor.tensor_type.name, [int(dim) for dim in tensor.shape][::-1]
    if kind in PLAIN:
        return kind, shape
    rows = 1
    for dim in shape[:-1]:
        rows *= dim
    return "U8", [*shape[:-1], int(tensor.n_bytes) // rows]


def check_header(path: str, model: str, reader: GGUFReader) -> None:
    """The file by hand, without the library: every tensor's bytes are the container's, its numbers little-endian."""
    big = reader.endianess == GGUFEndian.BIG
    with open(path, "rb") as file, open(model, "rb") as source:
        (length,) = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(length))
        same("__metadata__ format", header["__metadata__"]["format"], "pt")
        same("the first key", next(iter(header)), "__metadata__")
        data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        container = mmap.mmap(source.fileno(), 0, access=mmap.ACCESS_READ)
        for tensor in reader.tensors:
            entry = header[tensor.name]
            same(f"{tensor.name}: dtype and shape", (entry["dtype"], entry["shape"]), expected(tensor))
            start, end = (8 + length + offset for offset in entry["data_offsets"])
            theirs = int(tensor.data_offset)
            same(f"{tensor.name}: bytes", end - start, int(tensor.n_bytes))
            if big and entry["dtype"] != "U8":
                wanted = little(tensor.tensor_type, tensor.data, big).tobytes()
            else:
                wanted = container[theirs : theirs + int(tensor.n_bytes)]
            equal = data[start:end] == wanted
            assert equal, f"{tensor.name}: the bytes differ"


def check_library(path: str, reader: GGUFReader) -> None:
    """The file through the library: exactly the container's names, and the values of what numpy can hold."""
    with safe_open(path, framework="numpy") as file:
        same("metadata's format", file.metadata()["format"], "pt")
        names = [tensor.name for tensor in reader.tensors]
        same("names", sorted(file.keys()), sorted([*names, RESERVED]))
        for tensor in reader.tensors:
            kind, shape = expected(tensor)
            view = file.get_slice(tensor.name)
            same(f"{tensor.name}: dtype", view.get_dtype(), kind)
            same(f"{tensor.name}: shape", view.get_shape(), shape)
            if kind in NUMPY:
                values = file.get_tensor(tensor.name)
                same(f"{tensor.name}: numpy's dtype", values.dtype, numpy.dtype(NUMPY[kind]))
                equal = values.tobytes() == little(tensor.tensor_type, tensor.data, big=False).tobytes()
                assert equal, f"{tensor.name}: the values differ from GGUFReader's"


def check(program: str, model: str, reader: GGUFReader) -> str:
    with tempfile.TemporaryDirectory() as folder:
        once, twice, back = (os.path.join(folder, name) for name in ("1.safetensors", "2.safetensors", "back.gguf"))
        run(program, "convert", model, once, "--dtype", "raw", "--quiet")
        check_header(once, model, reader)
        check_library(once, reader)
        run(program, "convert", model, twice, "--dtype", "raw", "--quiet")
        same("SHA-256 of a second conversion", sha256(twice), sha256(once))
        os.remove(twice)
        run(program, "verify", once, "--against", model, "--quiet")
        run(program, "restore", once, back, "--quiet")
        same("SHA-256 of what is restored", sha256(back), sha256(model))
        return f"{len(reader.tensors)} tensors in {os.path.getsize(once)} bytes, and back"
