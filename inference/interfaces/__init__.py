"""Stories behind the faces of other libraries: each folder here is imported as ``crowdppl.`` and its name.

The root of the checkout is the package, and a ``sklearn.py`` there would hide scikit-learn from whoever works in it.
"""
