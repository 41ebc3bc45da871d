"""What a model is shown: the log as a view. Pure, synchronous, without a provider or a clock."""
