"""The job of `gguf2st convert MODEL OUT` as the Python world does it: gguf, numpy and safetensors.

python convert.py MODEL.gguf OUT.safetensors     (pip install gguf numpy safetensors ml_dtypes)
"""

import sys

import gguf
import ml_dtypes
import numpy as np
from safetensors.numpy import save_file

KEPT = {"F32": np.float32, "F16": np.float16, "F64": np.float64, "I8": np.int8, "I16": np.int16, "I32": np.int32, "I64": np.int64}


def main(model: str, out: str) -> None:
    tensors = {}
    for tensor in gguf.GGUFReader(model).tensors:
        shape = [int(dim) for dim in reversed(tensor.shape)]
        if tensor.tensor_type.name in KEPT:
            tensors[tensor.name] = np.ascontiguousarray(tensor.data).view(KEPT[tensor.tensor_type.name]).reshape(shape)
        else:
            values = gguf.quants.dequantize(tensor.data, tensor.tensor_type)
            tensors[tensor.name] = values.reshape(shape).astype(ml_dtypes.bfloat16)
    save_file(tensors, out, metadata={"format": "pt"})


if __name__ == "__main__":
    main(*sys.argv[1:])
