"""A story with its truth summed out: its sites, its densities, what is known beside the annotations, simulation."""
