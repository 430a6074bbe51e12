"""Other people's decoders of ggml's types, and the byte order of blocks."""

from types import SimpleNamespace

import numpy
from gguf import GGML_QUANT_SIZES, GGMLQuantizationType, quants
from gguf.scripts.gguf_convert_endian import byteswap_tensors

try:
    import libgguf
except ModuleNotFoundError:  # It has no wheel for this platform: see requirements.txt.
    libgguf = None

FLOATS = {"F64", "F32", "F16", "BF16"}
INTEGERS = {"I64", "I32", "I16", "I8"}
# What each can't decode. Neither knows Q2_0, and gguf has an older Q8_1, of 40 bytes.
NOT_GGUF = {"F64", "Q1_0", "Q8_1", "Q8_K"}
NOT_LIBGGUF = {*FLOATS, "Q8_1", "Q8_K"}
# This gguf doesn't swap these. The scale, an f16, is their only number of more than a byte: where it is in a block.
HALF = {"Q1_0": 0, "TQ2_0": 64}


def decode(kind: GGMLQuantizationType, rows: numpy.ndarray):
    """A tensor's rows as the float32 that each decoder gives: pairs of its name and a flat array."""
    with numpy.errstate(all="ignore"):  # Golden blocks overflow and have NaN as scale.
        if kind.name not in NOT_GGUF:
            yield "gguf", quants.dequantize(rows, kind).reshape(-1)
        if libgguf and kind.name not in NOT_LIBGGUF:
            yield "libgguf", libgguf.dequantize_rows(rows, kind).reshape(-1)
        if kind.name == "Q8_K":  # Neither has it: a float32, 256 int8 and sums of them.
            blocks = rows.reshape(-1, 292)
            yield "numpy", (blocks[:, :4].copy().view("<f4") * blocks[:, 4:260].view(numpy.int8)).reshape(-1)


def swappable(kind: GGMLQuantizationType) -> bool:
    """Whether the type has a big-endian layout."""
    return kind in byteswap_tensors or kind.name in {*HALF, *FLOATS, *INTEGERS}


def swapped(kind: GGMLQuantizationType, rows: numpy.ndarray) -> numpy.ndarray:
    """Rows of bytes in the other byte order."""
    stored = SimpleNamespace(data=rows.reshape(-1).copy())
    size = GGML_QUANT_SIZES[kind][1]
    if kind in byteswap_tensors:
        for block in range(0, len(stored.data), size):
            byteswap_tensors[kind](stored, block)
    elif kind.name in HALF:
        start = HALF[kind.name]
        halves = stored.data.reshape(-1, size)[:, start : start + 2]
        halves[:] = halves[:, ::-1].copy()
    else:
        assert kind.name in {*FLOATS, *INTEGERS}, f"{kind.name} has no big-endian layout"
        stored.data = stored.data.reshape(-1, size)[:, ::-1].copy()
    return stored.data.reshape(rows.shape)


def little(kind: GGMLQuantizationType, rows: numpy.ndarray, big: bool) -> numpy.ndarray:
    """Rows as GGUFReader gives them, little-endian."""
    if rows.dtype != numpy.uint8:  # It tells numpy the order of plain numbers that numpy has.
        return numpy.ascontiguousarray(rows, dtype=rows.dtype.newbyteorder("<"))
    return swapped(kind, rows) if big else rows
