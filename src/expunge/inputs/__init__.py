"""The only gate: what users pass becomes checked rows, a concept and weights, or an `InputError`.

Every message has three parts: what is wrong, what was received, what to do.
"""

from expunge.inputs.concepts import ConceptType, check_concept, check_known
from expunge.inputs.matrices import as_matrix, check_rows
from expunge.inputs.parameters import (
    check_choice,
    check_list,
    check_number,
    check_rank,
    check_rng,
)
from expunge.inputs.several import join_concepts, label_codes, match_labels
from expunge.inputs.weights import check_weights
from expunge.inputs.widths import check_width

__all__ = [
    "ConceptType",
    "as_matrix",
    "check_choice",
    "check_concept",
    "check_known",
    "check_list",
    "check_number",
    "check_rank",
    "check_rng",
    "check_rows",
    "check_weights",
    "check_width",
    "join_concepts",
    "label_codes",
    "match_labels",
]
