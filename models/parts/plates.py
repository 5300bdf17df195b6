"""Names of plates, which are names of dimensions."""


def dim_of_plate(name: str) -> str:
    """The dimension that a plate runs over: its name, up to a full stop.

    NumPyro takes all plates of one name for one, with one place among the dimensions. A part of a story that does not
    know where the story has its plate ``worker`` therefore calls its own ``worker.abstention``.

    >>> dim_of_plate("worker"), dim_of_plate("worker.abstention")
    ('worker', 'worker')
    """
    return name.partition(".")[0]
