"""Memory of compiled functions."""

from typing import Any


def held_bytes(compiled: Any) -> int:
    """What a function that JAX has compiled holds at once: what goes in, what comes out and what it needs between.

    By XLA's own analysis, which counts what is given and returned in place twice.
    """
    memory = compiled.memory_analysis()
    return memory.argument_size_in_bytes + memory.output_size_in_bytes + memory.temp_size_in_bytes
