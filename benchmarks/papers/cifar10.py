"""CIFAR-10's images of its binary files: features for CIFAR-10H's counts, and for crowds that are simulated.

There an image is 3,073 bytes: its class, then 32 × 32 of red, of green and of blue, row by row (Krizhevsky 2009). The
files for Python are pickles, which may run any program, so that they are not read.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from crowdppl.data.errors import AnnotationError

if TYPE_CHECKING:
    import numpy as np

TEST, TRAIN = "test_batch.bin", "data_batch_*.bin"
SHAPE = (3, 32, 32)
"""Of an image in a file: colours, rows, columns."""

CLASSES, BYTES = 10, 1 + 3 * 32 * 32


def read_images(file: Path) -> tuple[np.ndarray, np.ndarray]:
    """Images ``(n, 32, 32, 3)`` from 0 to 1 in float32, and their classes ``(n,)`` from 0 to 9.

    Raises:
        AnnotationError: there is no such file, it is not of whole images, or a class is above 9.
    """
    import numpy as np

    if not file.is_file():
        raise AnnotationError(f"there is no {file}; the binary version of CIFAR-10 has it")
    data = np.fromfile(file, np.uint8)
    if not len(data) or len(data) % BYTES:
        raise AnnotationError(
            f"{file} has {len(data):,} bytes, which are no whole images of {BYTES:,} bytes each; the binary version of "
            "CIFAR-10 is needed, not those for Python and Matlab"
        )
    rows = data.reshape(-1, BYTES)
    y = rows[:, 0].astype(int)
    if (y >= CLASSES).any():
        number = int((y >= CLASSES).argmax())
        raise AnnotationError(f"{file}, image {number}: its class is {y[number]}; 0 to {CLASSES - 1} are accepted")
    return rows[:, 1:].reshape(-1, *SHAPE).transpose(0, 2, 3, 1).astype(np.float32) / 255, y


def training_images(folder: Path, n_classes: int, n: int) -> tuple[np.ndarray, np.ndarray]:
    """The first ``n`` training images of the first ``n_classes`` classes, with the mean of all taken off, and classes.

    Raises:
        AnnotationError: as of :func:`read_images`; or there are fewer of them.
    """
    import numpy as np

    parts = [read_images(file) for file in sorted(folder.glob(TRAIN))]
    y = np.concatenate([np.zeros(0, int), *(classes for _, classes in parts)])
    chosen = np.flatnonzero(y < n_classes)[:n]
    if len(chosen) < n:
        raise AnnotationError(
            f"{folder}/{TRAIN} has {len(chosen):,} images of the classes 0 to {n_classes - 1}; {n:,} are needed"
        )
    x = np.concatenate([images for images, _ in parts])[chosen]
    return x - x.mean(), y[chosen]


def write_features(images: Path, dataset: Path) -> Path:
    """Write the ``features.npz`` of CIFAR-10H: the test images, and those of the first training file as held-out tasks.

    Args:
        images: the folder of the binary files.
        dataset: the folder whose ``counts.npz`` has ``classes`` and, of each test image, ``truth``.

    Raises:
        AnnotationError: as of :func:`read_images`; or a class is not the task's true label, so that the order differs.
    """
    import numpy as np

    x, y = read_images(images / TEST)
    with np.load(dataset / "counts.npz") as arrays:
        truth, classes = arrays["truth"], arrays["classes"]
    if len(x) != len(truth):
        raise AnnotationError(f"{images / TEST} has {len(x):,} images, and {dataset} {len(truth):,} tasks")
    if (y != truth).any():
        number = int((y != truth).argmax())
        raise AnnotationError(
            f"{images / TEST}, image {number}: its class is {str(classes[y[number]])!r}, and the true label of task "
            f"{number} of {dataset} is {str(classes[truth[number]])!r}; images are needed in the order of the tasks"
        )
    x_test, y_test = read_images(images / TRAIN.replace("*", "1"))
    file = dataset / "features.npz"
    np.savez(file, task=np.arange(len(x)), x=x, x_test=x_test, y_test=classes[y_test])
    return file


def main(
    images: Annotated[Path, typer.Argument(help="The folder of the binary files.")],
    dataset: Annotated[Path, typer.Argument(help="The dataset's folder, which has counts.npz.")],
) -> None:
    """Give CIFAR-10H its images, which cp.load_dataset and cp.load_split then read."""
    from crowdppl.cli.terminal import plain_messages

    with plain_messages():
        typer.echo(write_features(images, dataset))


if __name__ == "__main__":
    typer.run(main)
