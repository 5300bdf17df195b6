"""What goes wrong between a story and its data."""


class StoryError(ValueError):
    """A story cannot be told of these annotations, or with these hyperparameters; the message says what would do."""
