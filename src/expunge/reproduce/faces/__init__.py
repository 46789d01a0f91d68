"""Concepts in the pixels of faces: Section 5.3 of the paper, with its Figure 4."""
