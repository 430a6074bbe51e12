"""`convert` to floats gives the bits of other people's decoders, rounded to nearest even once."""

import json
import os
import re
import struct
import tempfile
from collections import Counter

import numpy
from gguf import GGUFEndian, GGUFReader
from safetensors import safe_open

from decoders import FLOATS, INTEGERS, decode, libgguf, little
from program import done, same

BITS = {"F64": "<u8", "F32": "<u4", "F16": "<u2", "BF16": "<u2", "I64": "<u8", "I32": "<u4", "I16": "<u2", "I8": "|u1"}
INFINITY = {"F64": 0x7FF0 << 48, "F32": 0x7F80 << 16, "F16": 0x7C00, "BF16": 0x7F80}
# Each --dtype after f32, with what --keep-f32 says: `gauss` is in names of the containers made for this.
RUNS = [("bf16", []), ("auto", []), ("f16", []), ("auto", ["norm", "gauss"])]
# Values at a time, so that memory stays small.
PIECE = 1 << 22


class Output:
    """A safetensors file and its tensors' bits, read without the library: numpy has no BF16."""

    def __init__(self, path: str) -> None:
        with open(path, "rb") as file:
            (length,) = struct.unpack("<Q", file.read(8))
            self.header = json.loads(file.read(length))
        self.data = numpy.memmap(path, dtype=numpy.uint8, mode="r")[8 + length :]

    def bits(self, name: str) -> numpy.ndarray:
        start, end = self.header[name]["data_offsets"]
        return self.data[start:end].view(BITS[self.header[name]["dtype"]])


def magnitude(bits: numpy.ndarray) -> numpy.ndarray:
    """Without the sign: above an infinity's it is NaN."""
    return bits & bits.dtype.type((1 << 8 * bits.itemsize - 1) - 1)


def same_bits(what: str, dtype: str, ours: numpy.ndarray, theirs: numpy.ndarray) -> None:
    """Bit for bit, but for what is inside a NaN."""
    differ = numpy.flatnonzero(ours != theirs)
    if differ.size and dtype in FLOATS:
        nan = (magnitude(array[differ]) > INFINITY[dtype] for array in (ours, theirs))
        differ = differ[~numpy.logical_and(*nan)]
    if differ.size:
        at = differ[0]
        raise AssertionError(f"{what}: {differ.size} differ, value {at} is {ours[at]:#x}, theirs {theirs[at]:#x}")


def to_bf16(values: numpy.ndarray) -> numpy.ndarray:
    """The bits of float32 or float64 rounded to BF16: to nearest, ties to even, in one rounding."""
    near = values.astype("<f4")
    bits = near.view("<u4")
    if values.dtype == numpy.float64:
        # First to odd: towards zero, and the last bit remembers what was lost.
        bits = bits - (abs(near) > abs(values))
        bits = bits | (near != values)
    nan = magnitude(bits) > INFINITY["F32"]
    rounded = (bits + (0x7FFF + (bits >> 16 & 1)).astype("<u4") >> 16).astype("<u2")
    rounded[nan] = 0x7FC0
    return rounded


def narrowed(values: numpy.ndarray, dtype: str) -> numpy.ndarray:
    """The bits of float32 or float64 in another dtype."""
    with numpy.errstate(all="ignore"):
        if dtype == "BF16":
            return to_bf16(values)
        return values.astype({"F32": "<f4", "F16": "<f2"}[dtype]).view(BITS[dtype])


def expected(kind: str, dtype: str, kept: bool) -> str:
    """The dtype that a tensor has to get."""
    if kind in INTEGERS or (dtype == "auto" and kind in FLOATS and not kept):
        return kind
    return "F32" if kept else "BF16" if dtype == "auto" else dtype.upper()


def pieces(tensor):
    """A tensor's rows some at a time, with where their values are in it."""
    rows = tensor.data.reshape(-1, tensor.data.shape[-1])
    row = int(tensor.shape[0])
    step = max(1, PIECE // row)
    for start in range(0, len(rows), step):
        some = rows[start : start + step]
        yield slice(start * row, (start + len(some)) * row), some


class Check:
    def __init__(self, program: str, model: str, reader: GGUFReader, folder: str) -> None:
        self.program, self.model, self.reader, self.folder = program, model, reader, folder
        self.big = reader.endianess == GGUFEndian.BIG
        # The file of float32: once it is right, the other dtypes are held against it.
        self.wide = None
        # How many values each decoder vouched for.
        self.vouched = Counter()

    def tensor(self, tensor, dtype: str, ours: numpy.ndarray) -> int:
        """Compares a tensor and gives how many finite values became infinite."""
        kind, infinite = tensor.tensor_type, 0
        for where, rows in pieces(tensor):
            rows = little(kind, rows, self.big)
            what = f"{tensor.name} ({kind.name}) in {dtype}"
            if dtype == kind.name:
                bits = numpy.ascontiguousarray(rows).view(BITS[dtype]).reshape(-1)
                same_bits(f"{what} and the container", dtype, ours[where], bits)
            elif self.wide is None and kind.name != "F64":
                for who, values in decode(kind, rows):
                    same_bits(f"{what} and {who}", dtype, ours[where], values.view(BITS["F32"]))
                    self.vouched[who] += values.size
            else:
                wide = rows.reshape(-1) if kind.name == "F64" else self.wide.bits(tensor.name)[where].view("<f4")
                bits = narrowed(wide, dtype)
                same_bits(f"{what} and numpy", dtype, ours[where], bits)
                if (became := magnitude(bits) == INFINITY[dtype]).any():
                    infinite += int(numpy.isfinite(wide[became]).sum())
        return infinite

    def run(self, dtype: str, keep: list[str]) -> Output:
        """Converts and compares everything."""
        path = os.path.join(self.folder, f"{dtype}.safetensors")
        keeping = ["--keep-f32", ",".join(keep)] if keep else []
        said = done(self.program, "convert", self.model, path, "--force", "--dtype", dtype, *keeping).stderr
        output = Output(path)
        with safe_open(path, framework="numpy") as file:
            same("names", sorted(file.keys()), sorted(tensor.name for tensor in self.reader.tensors))
            found = {name: (file.get_slice(name).get_dtype(), file.get_slice(name).get_shape()) for name in file.keys()}
        infinite = {}
        for tensor in self.reader.tensors:
            kept = any(text in tensor.name for text in keep)
            wanted = expected(tensor.tensor_type.name, dtype, kept)
            shape = [int(dim) for dim in tensor.shape][::-1]
            same(f"{tensor.name} in {dtype}: dtype and shape", found[tensor.name], (wanted, shape))
            if count := self.tensor(tensor, wanted, output.bits(tensor.name)):
                infinite[tensor.name] = count
        warned = re.findall(r'warning: tensor "(.*)": ([0-9,]+) finite values? ', said.decode())
        warned = {name: int(count.replace(",", "")) for name, count in warned}
        same(f"finite values that became infinite in {dtype}", warned, infinite)
        return output


def check(program: str, model: str, reader: GGUFReader) -> str:
    with tempfile.TemporaryDirectory() as folder:
        check = Check(program, model, reader, folder)
        check.wide = check.run("f32", [])
        for dtype, keep in RUNS:
            check.run(dtype, keep)
        types = " ".join(sorted({tensor.tensor_type.name for tensor in reader.tensors})) or "no tensors"
        vouched = "".join(f", {count:,} values as {who}" for who, count in sorted(check.vouched.items()))
        missing = "" if libgguf else "; libgguf is not to be had here"
        return f"{types}{vouched}{missing}"
