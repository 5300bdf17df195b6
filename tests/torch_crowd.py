"""A torch network for the tests of the Pyro programs."""

import torch


def network(n_features=2, n_classes=2, hidden=8, dropout=0.0):
    """A perceptron whose last layer starts at zero."""
    out = torch.nn.Linear(hidden, n_classes)
    torch.nn.init.zeros_(out.weight)
    torch.nn.init.zeros_(out.bias)
    first = torch.nn.Linear(n_features, hidden)
    return torch.nn.Sequential(first, torch.nn.ReLU(), torch.nn.Dropout(dropout), out)


def stopped_after(patch, kind, name, n_calls):
    """Have a method of a class raise what Ctrl-C does, where it has been called so many times."""
    method, calls = getattr(kind, name), []

    def stops(*arguments, **options):
        if len(calls) == n_calls:
            raise KeyboardInterrupt
        calls.append(1)
        return method(*arguments, **options)

    patch.setattr(kind, name, stops)
