"""Fits as folders and as ArviZ data."""
