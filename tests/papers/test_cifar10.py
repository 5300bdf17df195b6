"""CIFAR-10's binary files: what is read of them, what is refused, and that networks learn from it; on a made set."""

import json

import numpy as np
import pytest

import crowdppl as cp
from crowdppl.benchmarks.papers.cifar10 import BYTES, read_images, training_images, write_features
from crowdppl.benchmarks.papers.conal_synthetic import run
from crowdppl.data.errors import AnnotationError

NAMES = np.array(["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"])


def write_file(file, y, seed=0):
    """Noise, over which the two rows of the class of each image are bright in one of the colours."""
    pixels = np.random.default_rng(seed).integers(0, 40, (len(y), 3, 32, 32), dtype=np.uint8)
    for image, k in zip(pixels, y, strict=True):
        image[k % 3, 3 * k : 3 * k + 2] = 255
    rows = np.concatenate([np.asarray(y, np.uint8)[:, None], pixels.reshape(len(y), -1)], axis=1)
    file.write_bytes(rows.tobytes())
    return pixels


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The binary files of 60 images each, and counts of ten annotations for each of the test images."""
    images, dataset = tmp_path / "images", tmp_path / "data" / "cifar10h"
    images.mkdir()
    dataset.mkdir(parents=True)
    y = np.arange(60) % 10
    write_file(images / "test_batch.bin", y)
    write_file(images / "data_batch_1.bin", y[::-1], seed=1)
    counts = np.full((60, 10), 0)
    counts[np.arange(60), y], counts[np.arange(60), (y + 1) % 10] = 7, 3
    np.savez(dataset / "counts.npz", counts=counts, truth=y, classes=NAMES)
    monkeypatch.setenv("CROWDPPL_DATA", str(dataset.parent))
    return images, dataset


def test_an_image_is_its_class_and_then_red_green_and_blue_row_by_row(tmp_path):
    pixels = write_file(tmp_path / "x.bin", [3, 9])
    x, y = read_images(tmp_path / "x.bin")
    assert (x.shape, x.dtype, y.tolist()) == ((2, 32, 32, 3), np.float32, [3, 9])
    for image, row, column, colour in [(0, 9, 31, 0), (1, 27, 0, 0), (1, 5, 20, 2)]:
        assert x[image, row, column, colour] == np.float32(pixels[image, colour, row, column] / 255)
    assert x[0, 9:11, :, 0].min() == 1


def test_files_that_are_not_whole_images_are_refused_with_what_is_needed(tmp_path):
    file = tmp_path / "x.bin"
    with pytest.raises(AnnotationError, match=r"there is no .*x\.bin; the binary version"):
        read_images(file)
    for data in (b"", bytes(BYTES - 1), b"\x80\x04\x95"):  # the last is how a pickle begins
        file.write_bytes(data)
        with pytest.raises(AnnotationError, match=rf"x\.bin has {len(data):,} bytes, .* images of 3,073 bytes"):
            read_images(file)
    file.write_bytes(bytes(BYTES) + b"\x0a" + bytes(BYTES - 1))
    with pytest.raises(AnnotationError, match=r"x\.bin, image 1: its class is 10; 0 to 9 are accepted"):
        read_images(file)


@pytest.mark.filterwarnings("ignore::crowdppl.ConvergenceWarning")
def test_a_network_learns_from_the_counts_of_images(folder):
    """The classes are bright in rows of their own: chance is right of a tenth of the held-out images."""
    write_features(*folder)
    annotations = cp.load_dataset("cifar10h")
    np.testing.assert_array_equal(annotations.features, read_images(folder[0] / "test_batch.bin")[0])
    assert cp.list_datasets().set_index("name").loc["cifar10h", "features"] == "32 x 32 x 3"
    x, y = cp.load_split("cifar10h", "test")
    assert y.tolist() == (np.arange(60) % 10)[::-1].tolist()
    options = {"classifier": cp.Classifier("mlp", hidden=(32,)), "network_rate": 3e-3, "epochs": 20, "batch_size": 20}
    fit = cp.fit("majority_vote", annotations, progress=False, **options)
    assert (fit.predict_proba(x).argmax(-1) == y).mean() > 0.8


def test_images_in_another_order_than_the_tasks_are_refused(folder):
    images, dataset = folder
    write_file(images / "test_batch.bin", [0, 2, *[0] * 58])
    with pytest.raises(AnnotationError, match=r"image 1: its class is 'bird', and the true label of task 1 .*'auto"):
        write_features(images, dataset)
    write_file(images / "test_batch.bin", [0, 1])
    with pytest.raises(AnnotationError, match=r"has 2 images, and .* 60 tasks"):
        write_features(images, dataset)


def test_images_of_the_first_classes_are_taken_and_too_few_are_refused(folder):
    x, y = training_images(folder[0], 6, 36)
    assert x.shape == (36, 32, 32, 3)
    assert abs(x.mean()) < 1e-6
    assert set(y) == set(range(6))
    with pytest.raises(AnnotationError, match="has 36 images of the classes 0 to 5; 37 are needed"):
        training_images(folder[0], 6, 37)


def test_a_simulated_crowd_annotates_images(folder):
    row = run("strength is how often right", "DL-MV", 0, epochs=1, n_train=24, n_test=12, images=str(folder[0]))
    assert json.loads(json.dumps(row)) == row
    assert 0 <= row["accuracy"] <= 100
