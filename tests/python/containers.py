"""Containers with a tensor of every type that gguf knows, made of the golden blocks and of numbers."""

import os

import numpy
from gguf import GGML_QUANT_SIZES, GGMLQuantizationType, GGUFEndian, GGUFWriter

from decoders import swappable, swapped

SETS = ("gauss", "random", "edge")


def around(numbers: numpy.ndarray) -> numpy.ndarray:
    """Numbers, and what lies right above and below them."""
    infinity = numbers.dtype.type(numpy.inf)
    return numpy.concatenate([numbers, numpy.nextafter(numbers, infinity), numpy.nextafter(numbers, -infinity)])


def plain():
    """Names and arrays of plain numbers: floats where rounding could go wrong, and any."""
    random = numpy.random.default_rng(1)
    words = numpy.arange(1 << 16, dtype="<u2")
    with numpy.errstate(all="ignore"):
        # Halfway between every two F16, and to infinity; so for BF16.
        halves = words[:0x7C00].view("<f2").astype("<f4")
        halves = (halves + numpy.append(halves[1:], numpy.float32(65536))) / 2
        brains = (words.astype("<u4") << 16 | 0x8000).view("<f4")
        ties = numpy.concatenate([halves, -halves, brains])
        # Halfway between two F32, too.
        singles = random.integers(1 << 32, size=1 << 14, dtype="<u4")
        between = (singles.astype("<u8") << 29 | 1 << 28) & (1 << 63) - 1 | 7 << 59
        yield "ties.F32", around(ties)
        yield "random.F32", singles.view("<f4").reshape(2, 32, -1)
        yield "ties.F64", around(numpy.concatenate([ties.astype("<f8"), between.view("<f8")]))
        yield "random.F64", random.integers(1 << 64, size=1 << 14, dtype="<u8").view("<f8").reshape(64, -1)
    yield "all.F16", words.view("<f2")
    for bits in (8, 16, 32, 64):
        words = random.integers(1 << bits, size=(3, 5, 7), dtype=f"<u{bits // 8}")
        yield f"random.I{bits}", words.view(f"<i{bits // 8}")


def golden(folder: str):
    """Names, types and rows of bytes."""
    yield "all.BF16", GGMLQuantizationType.BF16, numpy.arange(1 << 16, dtype="<u2").view(numpy.uint8)
    for kind in GGMLQuantizationType:
        for name in (f"{kind.name}.{part}" for part in SETS):
            path = os.path.join(folder, f"{name}.blocks")
            if os.path.exists(path):
                blocks = numpy.fromfile(path, dtype=numpy.uint8)
                # Two axes above the row: a row of 512 values is whole blocks of any type.
                values, size = GGML_QUANT_SIZES[kind]
                yield name, kind, blocks.reshape(2, -1, 512 // values * size)


def write(folder: str, into: str) -> list[str]:
    """Writes a little-endian and a big-endian one and gives their paths."""
    paths = []
    for order in (GGUFEndian.LITTLE, GGUFEndian.BIG):
        big = order == GGUFEndian.BIG
        path = os.path.join(into, f"types-{order.name.lower()}-endian.gguf")
        writer = GGUFWriter(path, "types", endianess=order)
        for name, array in plain():
            writer.add_tensor(name, array, tensor_endianess=GGUFEndian.LITTLE)
        for name, kind, rows in golden(folder):
            if not big or swappable(kind):
                # Bytes have no order for the writer.
                writer.add_tensor(name, swapped(kind, rows) if big else rows, raw_dtype=kind)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
        paths.append(path)
    return paths
