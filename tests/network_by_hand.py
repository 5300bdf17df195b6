"""The ready-made networks in evaluation mode, in plain NumPy."""

import numpy as np

EPSILON = 1e-5  # of batch norm


def logits(sites, x):
    """Logits of features ``x (n, ...)`` at weights and running statistics by site."""
    w = {name.removeprefix("classifier."): np.asarray(value, dtype=float) for name, value in sites.items()}
    x = np.asarray(x, dtype=float)
    if "convolutions.0.kernel" in w:
        x = x if x.ndim == 4 else x[..., None]
        for i in range(sum(name.startswith("convolutions.") for name in w) // 2):
            x = np.maximum(convolved(x, w[f"convolutions.{i}.kernel"], w[f"convolutions.{i}.bias"]), 0)
            x = pooled(normalised(x, w, f"norms.{i}"))
        w = {name.removeprefix("head."): value for name, value in w.items() if name.startswith("head.")}
    x = x.reshape(len(x), -1)
    if "linear.kernel" in w:
        return x @ w["linear.kernel"] + w["linear.bias"]
    x = normalised(x, w, "norms.0")
    for i in range(sum(name.startswith("layers.") for name in w) // 2):
        x = np.maximum(x @ w[f"layers.{i}.kernel"] + w[f"layers.{i}.bias"], 0)
        x = normalised(x, w, f"norms.{i + 1}")
    return x @ w["out.kernel"] + w["out.bias"]


def softmax(x):
    """Probabilities of logits, along the last axis."""
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def normalised(x, w, name):
    """By the running mean and variance of the layer, where it has them."""
    if f"{name}.mean" not in w:
        return x
    scaled = (x - w[f"{name}.mean"]) / np.sqrt(w[f"{name}.var"] + EPSILON)
    return scaled * w[f"{name}.scale"] + w[f"{name}.bias"]


def convolved(x, kernel, bias):
    """By 3 × 3 pixels around each, with zeros beyond the edges."""
    n, height, width, _ = x.shape
    padded = np.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)))
    out = np.zeros((n, height, width, kernel.shape[-1])) + bias
    for i in range(3):
        for j in range(3):
            out += padded[:, i : i + height, j : j + width] @ kernel[i, j]
    return out


def pooled(x):
    """The largest of each 2 × 2 pixels, of fewer at an odd edge."""
    n, height, width, depth = x.shape
    rows, columns = -(-height // 2), -(-width // 2)
    out = np.empty((n, rows, columns, depth))
    for i in range(rows):
        for j in range(columns):
            out[:, i, j] = x[:, 2 * i : 2 * i + 2, 2 * j : 2 * j + 2].max((1, 2))
    return out
