"""`inspect --json` is gguf.GGUFReader's view: keys, types, values, tensors."""

import json
import math
import os

import numpy
from gguf import GGUFEndian, GGUFReader, GGUFValueType

from program import run, same

TYPE_NAMES = {
    GGUFValueType.UINT8: "u8",
    GGUFValueType.INT8: "i8",
    GGUFValueType.UINT16: "u16",
    GGUFValueType.INT16: "i16",
    GGUFValueType.UINT32: "u32",
    GGUFValueType.INT32: "i32",
    GGUFValueType.FLOAT32: "f32",
    GGUFValueType.BOOL: "bool",
    GGUFValueType.STRING: "string",
    GGUFValueType.ARRAY: "array",
    GGUFValueType.UINT64: "u64",
    GGUFValueType.INT64: "i64",
    GGUFValueType.FLOAT64: "f64",
}
FLOATS = {GGUFValueType.FLOAT32: numpy.float32, GGUFValueType.FLOAT64: numpy.float64}


def text(value) -> bytes:
    """A string of our JSON as the bytes that it stands for."""
    return bytes.fromhex(value["bytes"]) if isinstance(value, dict) else value.encode()


def number(value, kind):
    """A number of our JSON; one that JSON has no number for is spelt out."""
    if kind in FLOATS:
        return FLOATS[kind](value["float"] if isinstance(value, dict) else value)
    assert type(value) is (bool if kind == GGUFValueType.BOOL else int), f"{value!r} is not a {TYPE_NAMES[kind]}"
    return value


def same_values(key: str, ours: list, field, kind) -> None:
    """All values of a field; a scalar's is the only one."""
    same(f"{key}: length", len(ours), len(field.data))
    for value, part in zip(ours, field.data):
        raw = field.parts[part]
        if kind == GGUFValueType.STRING:
            same(key, text(value), raw.tobytes())
            continue
        value, theirs = number(value, kind), raw[0].item()
        if not (kind in FLOATS and math.isnan(value) and math.isnan(theirs)):
            same(key, value, bool(theirs) if kind == GGUFValueType.BOOL else theirs)


def same_metadata(ours: list, reader: GGUFReader) -> None:
    # GGUFReader lists the header's words as fields of its own.
    theirs = [(name, field) for name, field in reader.fields.items() if not name.startswith("GGUF.")]
    same("keys", [text(entry["key"]).decode() for entry in ours], [name for name, _ in theirs])
    for entry, (name, field) in zip(ours, theirs):
        kind, value = field.types[0], entry["value"]
        if kind != GGUFValueType.ARRAY:
            same(f"{name}: type", entry["type"], TYPE_NAMES[kind])
            same_values(name, [value], field, kind)
            continue
        assert len(field.types) <= 2, f"{name}: GGUFReader does not tell the values of nested arrays apart"
        same(f"{name}: length", value["length"], len(field.data))
        # Of an array without elements GGUFReader does not tell the type.
        if field.data:
            same(f"{name}: type", entry["type"], f"array[{TYPE_NAMES[field.types[1]]}]")
            same(f"{name}: element type", value["element_type"], TYPE_NAMES[field.types[1]])
            same_values(name, value["elements"], field, field.types[1])


def same_tensors(ours: list, reader: GGUFReader) -> None:
    same("number of tensors", len(ours), len(reader.tensors))
    for tensor, theirs in zip(ours, reader.tensors):
        name, dims = theirs.name, [int(dim) for dim in theirs.shape]
        same("tensor", text(tensor["name"]).decode(), name)
        same(f"{name}: type", tensor["ggml_type"], theirs.tensor_type.name)
        same(f"{name}: dims", tensor["dims"], dims)
        same(f"{name}: shape", tensor["shape"], dims[::-1])
        same(f"{name}: offset", tensor["offset"], int(theirs.data_offset))
        same(f"{name}: bytes", tensor["bytes"], int(theirs.n_bytes))


def check(program: str, model: str, reader: GGUFReader) -> str:
    ours = json.loads(run(program, "inspect", model, "--json", "--full"))
    for name, theirs in [
        ("version", int(reader.fields["GGUF.version"].parts[0][0])),
        ("byte_order", "big" if reader.endianess == GGUFEndian.BIG else "little"),
        ("alignment", int(reader.alignment)),
        ("tensor_count", len(reader.tensors)),
        ("metadata_count", int(reader.fields["GGUF.kv_count"].parts[0][0])),
        ("file_size", os.path.getsize(model)),
        ("parameters", sum(int(tensor.n_elements) for tensor in reader.tensors)),
    ]:
        same(name, ours[name], theirs)
    if reader.tensors:
        same("data_offset", ours["data_offset"], int(reader.data_offset))
    same_metadata(ours["metadata"], reader)
    same_tensors(ours["tensors"], reader)

    # Without --full an array shows its first five, and nothing else is different.
    short = json.loads(run(program, "inspect", model, "--json"))
    for entry in ours["metadata"]:
        if isinstance(entry["value"], dict) and "elements" in entry["value"]:
            entry["value"]["head"] = entry["value"].pop("elements")[:5]
    same("the short view", short, ours)
    return f"{len(ours['metadata'])} keys and {len(ours['tensors'])} tensors"
