"""Stories in words: their densities, their hyperparameters, and the options of the engines."""
