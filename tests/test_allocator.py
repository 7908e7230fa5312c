"""What the C library does with memory that is freed."""

import ctypes
import platform
import subprocess
import sys

import pytest

MAPPED = """
import ctypes
from memeval.process.allocator import LARGE_BYTES, map_large_blocks

class Counts(ctypes.Structure):
    names = "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost"
    _fields_ = [(name, ctypes.c_size_t) for name in names.split()]

def mapped_bytes():
    library = ctypes.CDLL(None)
    library.mallinfo2.restype = Counts
    return library.mallinfo2().hblkhd

if {called}:
    map_large_blocks()

bytearray(16 * LARGE_BYTES)  # its size is freed once
before = mapped_bytes()
block = bytearray(8 * LARGE_BYTES)
print(mapped_bytes() - before >= 8 * LARGE_BYTES)
"""


@pytest.mark.skipif(
    platform.libc_ver()[0] != "glibc" or not hasattr(ctypes.CDLL(None), "mallinfo2"),
    reason="needs glibc 2.33 or newer",
)
@pytest.mark.parametrize("called", [True, False])
def test_a_large_block_can_be_returned_although_its_size_was_freed_before(called: bool) -> None:
    code = MAPPED.replace("{called}", str(called))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == str(called)
