"""Experiments of the papers whose stories are here: each runs again by one command, and every claim gets a verdict."""
