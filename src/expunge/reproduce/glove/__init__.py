"""Gender in static word vectors: Section 5.1 of the paper, with its Tables 1 and 3."""
