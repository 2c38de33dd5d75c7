"""Reads a tensor file with the safetensors package, prints it as JSON, and writes it anew.

Usage: tensor_files.py FROM TO. Uses the package's bytes interface: no array library is needed.
"""
import ctypes
import json
import sys

import safetensors

LONG_NAMES = {"F64": "float64", "I64": "int64", "F32": "float32", "I32": "int32", "F16": "float16",
              "BF16": "bfloat16", "I16": "int16", "I8": "int8", "U8": "uint8", "BOOL": "bool"}

with open(sys.argv[1], "rb") as file:
    tensors = dict(safetensors.deserialize(file.read()))
buffers = {}  # keeps the data alive: a TensorSpec holds an address only
rewritten = {}
for name, tensor in tensors.items():
    data = bytes(tensor["data"])
    buffers[name] = ctypes.create_string_buffer(data, max(len(data), 1))
    rewritten[name] = safetensors.TensorSpec(
        dtype=LONG_NAMES[tensor["dtype"]],
        shape=tensor["shape"],
        data_ptr=ctypes.addressof(buffers[name]),
        data_len=len(data),
    )
with open(sys.argv[2], "wb") as file:
    file.write(safetensors.serialize(rewritten, {"written by": "safetensors"}))
json.dump(
    {
        name: {"dtype": t["dtype"], "shape": list(t["shape"]), "data": bytes(t["data"]).hex()}
        for name, t in tensors.items()
    },
    sys.stdout,
)
