"""Parts of stories: emissions, the likelihood, truth priors, classifiers, concentrations, starts."""
