"""Compiled programs that this process keeps: counted, and let go."""

import gc

from crowdppl.inference.densities import programs


def n_kept(of=None):
    """How many are kept: of one compiled function, or of all."""
    return len(programs._kept) if of is None else sum(key[0] is of.function for key in programs._kept)


def forget_programs():
    """Let all of them go."""
    with programs._lock:
        programs._kept.clear()
    gc.collect()
