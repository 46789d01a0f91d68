"""What a solver need not say."""

import numpy as np

from expunge.game.result import SolveResult, Step, StopReason


def test_what_a_solver_does_not_say_is_nothing():
    found = SolveResult(np.eye(2), 1.0, "mine", StopReason.EXACT, (Step(3, 0.5),))
    assert (found.n_passes, found.spectrum, found.lost) == (0, None, 0.0)
    (step,) = found.history
    assert (step.relaxed, step.accuracy, step.width) == (None, None, None)
