"""The engines for Pyro programs, by :mod:`torch.autograd`. It needs the extra ``pyro``."""
