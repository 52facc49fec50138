"""Reads a safetensors file as the format's description says, and with the safetensors package where it
is installed. Prints one line a tensor: name, dtype, shape, and the values of float32 ones."""
import json
import struct
import sys

SIZES = {"F32": 4, "F16": 2, "BF16": 2, "U8": 1, "I64": 8}

data = open(sys.argv[1], "rb").read()
(length,) = struct.unpack("<Q", data[:8])
header = data[8:8 + length].decode("utf-8")
assert header.startswith("{") and length <= 100_000_000 and length % 8 == 0
tensors = json.loads(header)
metadata = tensors.pop("__metadata__")
assert all(isinstance(value, str) for value in metadata.values())
body = data[8 + length:]
end = 0
for name, entry in sorted(tensors.items(), key=lambda item: item[1]["data_offsets"]):
    begin, stop = entry["data_offsets"]
    elements = 1
    for extent in entry["shape"]:
        elements *= extent
    assert begin == end and stop - begin == elements * SIZES[entry["dtype"]]
    assert (8 + length + begin) % SIZES[entry["dtype"]] == 0
    end = stop
    values = struct.unpack(f"<{elements}f", body[begin:stop]) if entry["dtype"] == "F32" else ()
    print(name, entry["dtype"], *entry["shape"], ":", *values)
assert end == len(body)

try:
    import safetensors
except ImportError:
    sys.exit()
with safetensors.safe_open(sys.argv[1], "numpy") as file:
    assert set(file.keys()) == set(tensors) and file.metadata() == metadata
    for name, entry in tensors.items():
        tensor = file.get_tensor(name)
        assert list(tensor.shape) == entry["shape"]
        assert tensor.tobytes() == body[slice(*entry["data_offsets"])]
print("read by the safetensors package too")
