"""From annotations to results: densities, engines, what follows from a fit, and views of it."""
