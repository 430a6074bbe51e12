#!/usr/bin/env python3
"""Decode the same rows with gguf2st-quants, with ggml's C reference and with PyPI's libgguf, in one process.

For every type: bytes of output per second on one core, beside a copy of as many bytes, and the ratio to the
C reference. The decoders take turns, so that a busy moment of the machine falls on all of them alike, and
float32 results are compared bit for bit before anything is timed.
"""

import argparse
import ctypes
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent

# id, name, values a block, bytes a block, offsets of f16 scales, the C reference's function
TYPES = [
    (0, "F32", 1, 4, [], None),
    (1, "F16", 1, 2, [0], "ggml_fp16_to_fp32_row"),
    (30, "BF16", 1, 2, [], "ggml_bf16_to_fp32_row"),
    (2, "Q4_0", 32, 18, [0], "dequantize_row_q4_0"),
    (3, "Q4_1", 32, 20, [0, 2], "dequantize_row_q4_1"),
    (6, "Q5_0", 32, 22, [0], "dequantize_row_q5_0"),
    (7, "Q5_1", 32, 24, [0, 2], "dequantize_row_q5_1"),
    (8, "Q8_0", 32, 34, [0], "dequantize_row_q8_0"),
    (10, "Q2_K", 256, 84, [80, 82], "dequantize_row_q2_K"),
    (11, "Q3_K", 256, 110, [108], "dequantize_row_q3_K"),
    (12, "Q4_K", 256, 144, [0, 2], "dequantize_row_q4_K"),
    (13, "Q5_K", 256, 176, [0, 2], "dequantize_row_q5_K"),
    (14, "Q6_K", 256, 210, [208], "dequantize_row_q6_K"),
    (15, "Q8_K", 256, 292, [], "dequantize_row_q8_K"),
    (19, "IQ1_S", 256, 50, [0], "dequantize_row_iq1_s"),
    (29, "IQ1_M", 256, 56, [], "dequantize_row_iq1_m"),
    (16, "IQ2_XXS", 256, 66, [0], "dequantize_row_iq2_xxs"),
    (17, "IQ2_XS", 256, 74, [0], "dequantize_row_iq2_xs"),
    (22, "IQ2_S", 256, 82, [0], "dequantize_row_iq2_s"),
    (18, "IQ3_XXS", 256, 98, [0], "dequantize_row_iq3_xxs"),
    (21, "IQ3_S", 256, 110, [0], "dequantize_row_iq3_s"),
    (20, "IQ4_NL", 32, 18, [0], "dequantize_row_iq4_nl"),
    (23, "IQ4_XS", 256, 136, [0], "dequantize_row_iq4_xs"),
    (34, "TQ1_0", 256, 54, [52], "dequantize_row_tq1_0"),
    (35, "TQ2_0", 256, 66, [64], "dequantize_row_tq2_0"),
    (39, "MXFP4", 32, 17, [], "dequantize_row_mxfp4"),
    (40, "NVFP4", 64, 36, [], "dequantize_row_nvfp4"),
    (41, "Q1_0", 128, 18, [0], "dequantize_row_q1_0"),
    (42, "Q2_0", 64, 18, [0], "dequantize_row_q2_0"),
]


def ours():
    """gguf2st-quants, built for release."""
    target = os.environ.get("CARGO_TARGET_DIR", str(HERE.parent / "target"))
    command = ["cargo", "build", "--release", "--quiet", "--manifest-path", str(HERE / "Cargo.toml")]
    subprocess.run([*command, "--target-dir", target], check=True)
    return ctypes.CDLL(str(Path(target) / "release" / "libdecode_bench.so")).gguf2st_decode


def ggml_reference(source, folder):
    """ggml's C, built for this machine, without contraction to fused multiply-adds."""
    library = Path(folder) / "libggml-reference.so"
    flags = "-O3 -march=native -ffp-contract=off -DNDEBUG -fPIC -shared -w".split()
    defines = ['-DGGML_VERSION="0"', '-DGGML_COMMIT="0"', "-D_GNU_SOURCE"]
    # CMake would write this one.
    (Path(folder) / "ggml-version.h").touch()
    includes = [f"-I{source / 'include'}", f"-I{source / 'src'}", f"-I{folder}"]
    files = [str(source / "src" / name) for name in ("ggml-quants.c", "ggml.c")]
    subprocess.run(["cc", *flags, *defines, *includes, *files, "-o", str(library), "-lm"], check=True)
    # Lazily: what the decoders do not call (back ends, files) is not there.
    return ctypes.CDLL(str(library), mode=os.RTLD_LAZY)


def libgguf_function():
    """libgguf's raw function, which writes into a given array; None where it is not installed."""
    try:
        import libgguf
    except ImportError:
        return None
    return libgguf._libgguf.dequantize_rows_into_raw


def aligned(size):
    """Bytes that begin at a cache line: what numpy hands out begins anywhere, and a copy's speed depends on it."""
    whole = np.zeros(size + 64, np.uint8)
    start = -whole.ctypes.data % 64
    return whole[start : start + size]


def blocks_of(rng, name, size, halves, count):
    """Random blocks whose scales are ordinary numbers."""
    data = rng.integers(0, 256, (count, size), dtype=np.uint8)
    if name in ("F32", "Q8_K"):
        data[:, :4] = rng.normal(0, 1, (count, 1)).astype("<f4").view(np.uint8)
    if name == "BF16":
        data[:, 1] &= 0xBF
    if name == "IQ1_M":
        data[:, 55] &= 0xBF
    for at in halves:
        data[:, at : at + 2] = rng.normal(0, 1, (count, 1)).astype("<f2").view(np.uint8)
    blocks = aligned(data.size)
    blocks[:] = data.reshape(-1)
    return blocks


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ggml", type=Path, help="a folder with ggml's include/ and src/")
    parser.add_argument("--output", type=int, default=1 << 20, help="bytes of output a call (default: 1 MiB)")
    parser.add_argument("--rounds", type=int, default=60, help="how often each decoder is timed")
    parser.add_argument("--best", action="store_true", help="the best round instead of the median")
    parser.add_argument("--only", default="", help="types, comma separated")
    arguments = parser.parse_args()

    decode = ours()
    folder = tempfile.TemporaryDirectory()
    reference = ggml_reference(arguments.ggml, folder.name) if arguments.ggml else None
    libgguf = libgguf_function()
    if reference is None and libgguf is None:
        print("neither --ggml nor libgguf: only our own figures", file=sys.stderr)
    rng = np.random.default_rng(1)
    only = set(filter(None, arguments.only.split(",")))

    print(f"GB/s of output, one core, {arguments.output} bytes a call, kernels "
          f"{os.environ.get('GGUF2ST_KERNELS', 'fastest')}, {'best' if arguments.best else 'median'} of "
          f"{arguments.rounds}")
    print(f"{'':8} {'copy':>6} {'f32':>6} {'bf16':>6} {'f16':>6} {'ggml C':>7} {'f32/C':>6} {'libgguf':>8} "
          f"{'f32/lib':>8} {'bf16: time/copy':>16}")
    ratios = []
    for type_id, name, values, size, halves, function in TYPES:
        if only and name not in only:
            continue
        blocks32 = blocks_of(rng, name, size, halves, arguments.output // 4 // values)
        blocks16 = blocks_of(rng, name, size, halves, arguments.output // 2 // values)
        count = len(blocks32) // size * values
        count16 = len(blocks16) // size * values
        out = aligned(count * 4).view(np.float32)
        out16 = aligned(count16 * 2).view(np.uint16)
        theirs = aligned(count * 4).view(np.float32)
        copy_from, copy_to = aligned(arguments.output), aligned(arguments.output)

        def run_ours(target, blocks, out, count):
            pointers = ctypes.c_void_p(blocks.ctypes.data), ctypes.c_void_p(out.ctypes.data)
            def call(pointers=pointers):
                assert decode(type_id, target, pointers[0], ctypes.c_size_t(len(blocks)), pointers[1],
                              ctypes.c_size_t(count)) == 0
            return call

        calls = {
            "copy": lambda: ctypes.memmove(copy_to.ctypes.data, copy_from.ctypes.data, arguments.output),
            "f32": run_ours(0, blocks32, out, count),
            "bf16": run_ours(30, blocks16, out16, count16),
            "f16": run_ours(1, blocks16, out16, count16),
        }
        if reference is not None and function is not None:
            c = getattr(reference, function)
            c.restype = None
            source, sink = ctypes.c_void_p(blocks32.ctypes.data), ctypes.c_void_p(theirs.ctypes.data)
            calls["ggml C"] = lambda: c(source, sink, ctypes.c_int64(count))
        if libgguf is not None:
            rows = aligned(count * 4).view(np.float32)
            def call_libgguf():
                libgguf(type_id, blocks32, rows, 1, count)
            try:
                call_libgguf()
                calls["libgguf"] = call_libgguf
            except Exception:  # types that it does not decode
                pass

        calls["f32"]()
        if "ggml C" in calls:
            calls["ggml C"]()
            same = (out.view(np.uint32) == theirs.view(np.uint32)) | (np.isnan(out) & np.isnan(theirs))
            assert same.all(), f"{name}: {np.count_nonzero(~same)} values differ from ggml's C"
        if "libgguf" in calls:
            same = (out.view(np.uint32) == rows.view(np.uint32)) | (np.isnan(out) & np.isnan(rows))
            assert same.all(), f"{name}: {np.count_nonzero(~same)} values differ from libgguf"

        times = {label: [] for label in calls}
        for _ in range(arguments.rounds):
            for label, call in calls.items():
                # Once untimed, so that each finds the cache as its own previous call left it.
                call()
                start = time.perf_counter_ns()
                call()
                times[label].append(time.perf_counter_ns() - start)
        typical = {label: (min if arguments.best else statistics.median)(t) for label, t in times.items()}
        speed = {label: arguments.output / t for label, t in typical.items()}

        def show(label, width):
            return f"{speed[label]:{width}.1f}" if label in speed else " " * (width - 1) + "–"

        def ratio(label, width):
            return f"{speed['f32'] / speed[label]:{width}.1f}" if label in speed else " " * (width - 1) + "–"

        if "ggml C" in speed:
            ratios.append(speed["f32"] / speed["ggml C"])
        print(f"{name:8} {show('copy', 6)} {show('f32', 6)} {show('bf16', 6)} {show('f16', 6)} {show('ggml C', 7)} "
              f"{ratio('ggml C', 6)} {show('libgguf', 8)} {ratio('libgguf', 8)} "
              f"{typical['bf16'] / typical['copy']:16.2f}", flush=True)
    if ratios:
        mean = math.exp(statistics.fmean(map(math.log, ratios)))
        print(f"f32 against ggml's C: {mean:.2f} times as fast in the geometric mean, {min(ratios):.2f} at least")


if __name__ == "__main__":
    main()
