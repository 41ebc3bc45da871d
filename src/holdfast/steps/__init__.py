"""The steps of a turn, each in a file of its own. `holdfast.turn` puts them together."""
