"""Gender in biographies: Section 5.2 of the paper, with its Table 2."""
