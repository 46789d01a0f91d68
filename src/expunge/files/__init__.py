"""Files of vectors: one interface to read them by blocks, one function to write them anew.

Nothing here knows what an erasure does; it is asked for new vectors block by block.
"""

from expunge.files.formats import FORMATS, open_file
from expunge.files.rewriting import convert, rewrite
from expunge.files.table import VectorFile

__all__ = ["FORMATS", "VectorFile", "convert", "open_file", "rewrite"]
