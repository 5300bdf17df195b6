"""Parts of stories: emissions, responses, truth priors, classifiers, concentrations, starts."""
