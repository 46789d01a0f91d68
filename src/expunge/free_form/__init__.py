"""Free-form LEACE: reading what is to be erased from features of x, by blocks and from sums."""
