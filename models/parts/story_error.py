"""The error of a story that does not fit its data or its hyperparameters."""


class StoryError(ValueError):
    """A story does not fit these annotations or hyperparameters; the message says what would be accepted."""
