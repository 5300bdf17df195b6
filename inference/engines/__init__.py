"""EM, SVI and NUTS over any story."""
