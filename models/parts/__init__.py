"""What stories are made of: emissions, responses, truth priors, classifiers, concentrations, starts."""
