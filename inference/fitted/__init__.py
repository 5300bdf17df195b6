"""What follows from a fit: labels, workers, tasks, decisions, groups, a summary."""
