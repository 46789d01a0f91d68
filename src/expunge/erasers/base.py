"""What all erasers share: the scikit-learn contract, streaming, the record of a fit."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from dataclasses import replace
from typing import Any, ClassVar, Literal, Self, cast

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import _check_feature_names, check_is_fitted

from expunge._version import __version__
from expunge.concept import Concept, Kind
from expunge.conditional import ConditionalErasure
from expunge.emptied import emptied_when_told, with_emptied_columns, without_digits
from expunge.erasers.cautions import (
    caution_of_stretching,
    caution_of_units,
    caution_of_what_is_left,
)
from expunge.erasers.from_moments import statistics_of
from expunge.erasers.pooled_fit import check_groups, grouped, pool_of, pooled, without_missing
from expunge.erasers.record import columns_record, fit_record, rows_record
from expunge.erasers.solution import Solution, check_varies, jsonable
from expunge.erasers.statistics import Data, Statistics
from expunge.erasure import Erasure
from expunge.errors import InputError, RoundingShows
from expunge.fingerprint import Fingerprint
from expunge.game.certificate import Certificate, certify, certify_moments
from expunge.game.conditional_certificate import certify_conditional
from expunge.game.kept import Kept, kept_in_moments, kept_in_rows, rows_to_look_at
from expunge.game.losses import Loss, loss_for
from expunge.game.result import Step
from expunge.inputs import (
    check_choice,
    check_concept,
    check_number,
    check_rows,
    check_weights,
    check_width,
)
from expunge.inputs.frames import columns_of, frame_of, rows_of_table
from expunge.inputs.swapped import refuse_swapped
from expunge.maps import Map
from expunge.moments import Moments
from expunge.nonlinear_erasure import NonlinearErasure
from expunge.number_text import short
from expunge.parallel import blas_for
from expunge.pooling.sharpened import PoolRecord
from expunge.rounding import rounding_shows, rows_that_round
from expunge.rows.base import Rows
from expunge.rows.mapped import MappedRows
from expunge.rows.remembered import RememberedRows

__all__ = ["ERASERS", "BaseEraser", "Data", "Solution", "Statistics", "register"]

Guarantee = Literal[
    "equal_means",
    "zero_cross_covariance",
    "mean_preserved",
    "orthogonal",
    "least_squares_optimal",
    "task_covariance_kept",
    "equal_class_covariances",
]


HALF = 1e-4  # relative rounding from which a type is one of half precision
PUT_BACK = 1e-3  # share of the loss without x below which rounding puts nothing back

ERASERS: dict[str, type[BaseEraser]] = {}


def register(eraser: type[BaseEraser]) -> type[BaseEraser]:
    """Add an eraser to `ERASERS`, where shared tests and the command line find it."""
    ERASERS[eraser.__name__] = eraser
    return eraser


def _streams(eraser: BaseEraser) -> bool:
    if reason := eraser._why_not_streaming():
        raise AttributeError(f"{type(eraser).__name__} cannot stream: {reason}")
    return True


class BaseEraser(OneToOneFeatureMixin, TransformerMixin, BaseEstimator, ABC):
    """Base of all erasers. A subclass gives `_solve`, from sums alone or from rows too.

    `guarantees` names what a full fit (strength 1, the concept's own rank) promises on its rows;
    `kinds` the kinds of concept it takes.
    """

    guarantees: ClassVar[frozenset[Guarantee]] = frozenset()
    kinds: ClassVar[frozenset[Kind]] = frozenset({"classes", "labels", "continuous"})
    concept_type: Any = "auto"
    strength: float = 1.0

    # -- what a method supplies ------------------------------------------------------------------

    @abstractmethod
    def _solve(self, seen: Statistics, data: Data | None) -> Solution:
        """Find the erasure; `data` is None when only sums were streamed."""

    def _why_not_streaming(self) -> str:
        """Why `partial_fit` is not offered; empty where it is."""
        return ""

    def _why_not_moments(self) -> str:
        """Why `fit_moments` is not offered; empty where it is."""
        if self._needs_class_moments():
            return "it needs the covariance of each class by itself"
        return self._why_not_streaming()

    def _why_not_pooling(self) -> str:
        """Why rows without labels are of no use; empty where they are."""
        return "it needs the concept of every row"

    def _check_stream(self, concept: Concept) -> None:
        """Refuse a chunk whose concept cannot be streamed with these parameters."""

    def _keeps_task(self) -> bool:
        """Whether y beside a concept is a task whose covariance is needed."""
        return False

    def _needs_class_moments(self) -> bool:
        """Whether the covariance of each class is needed."""
        return False

    def _certifies(self) -> bool:
        """Whether there is a concept that a certificate can speak of."""
        return self._needs_concept()

    def _needs_second(self) -> bool:
        """Whether a stream has to accumulate the d x d matrix Sxx."""
        return True

    def _needs_concept(self) -> bool:
        """Whether there is a concept at all."""
        return True

    def _check_parameters(self, n_features: int) -> None:
        """Refuse bad parameters before any work."""

    def _depends_on_units(self) -> bool:
        """Whether what is erased changes when a column is given in another unit."""
        return False

    def _certificate_terms(self) -> dict[str, Any]:
        """Settings of the certificate: loss, fit_intercept, alpha, tol."""
        return {}

    def _pooled(self, seen: Statistics, data: Data, pool: Rows) -> tuple[Statistics, Data]:
        """What rows without labels add to a fit."""
        return pooled(seen, data, pool, second=self._second_for_fit(data)), data

    # -- scikit-learn contract -------------------------------------------------------------------

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        concept: Any = None,
        sample_weight: Any = None,
        unlabelled: Any = None,
        groups: Any = None,
        missing: str = "error",
        vectors: Any = None,
    ) -> Self:
        """Find what to erase.

        Parameters
        ----------
        X : array or frame of shape (n, d), Rows, or a dataset of Hugging Face
            Of a frame or dataset, columns that are named below are no part of the vectors.
        y : array or frame of shape (n,) or (n, m), or dict of such
            The concept; or the task, when `concept` is given. Here and below, for frames, datasets
            and rows of a file: the name of a column, or several names.
        concept : array of shape (n,) or (n, m), optional
            The concept, where y is something else (inside a Pipeline, say).
        sample_weight : array of shape (n,), optional
        unlabelled : array or frame of shape (N, d), or Rows, optional
            More rows of the same population, whose concept is not known. They sharpen what few
            labels tell, so that erasure holds better on new rows; see `pool_`.
        groups : array of shape (n,), optional
            What each row belongs to (a person, a document), where rows of one are alike: then
            errors are counted by groups.
        missing : {"error", "unlabelled"}
            What to do with rows whose concept is None, NaN or empty: refuse them, or take them as
            unlabelled.
        vectors : str or list of str, optional
            Of a frame or dataset: the column of lists that holds the vectors, or the columns of
            numbers; a pattern with ``*`` stands for several. By default the only column of lists,
            or all columns that nothing else names.

        Returns
        -------
        self

        Raises
        ------
        InputError
            For input that cannot be used; and where `set_fit_request` asks for a concept that did
            not come, so that y, the task, is not erased in its place.
        """
        check_choice(missing, ("error", "unlabelled"), "missing")
        self._check_routed(concept)
        X = rows_of_table(X, y, concept, sample_weight, groups, vectors=vectors)
        unlabelled = rows_of_table(unlabelled, known=columns_of(X), name="unlabelled")
        if missing == "unlabelled":
            told = (y, None) if concept is None else (concept, y)
            rows, (target, task, *others), lost = without_missing(X, *told, sample_weight, groups)
            sample_weight, groups = others
            y, concept = (target, None) if concept is None else (task, target)
        else:
            rows, lost = X, None
        data = self._check(rows, y, concept, sample_weight, whole=True)
        pool = pool_of(unlabelled, lost, data.rows.n_features, type(self).__name__)
        if pool is not None and (reason := self._why_not_pooling()):
            raise InputError(
                f"{type(self).__name__} cannot use rows without labels: {reason}",
                f"{pool.n_samples} such rows",
                "Take LEACE, SAL or RLACE at the concept's own rank, or leave them out",
            )
        together = check_groups(groups, data.rows)
        data = replace(data, groups=together)
        seen, data = self._statistics(data, second=self._second_for_fit(data))
        seen, data = replace(seen, columns=columns_of(X)), replace(data, groups=together)
        if pool is not None:
            seen, data = self._pooled(seen, data, pool)
        if together is not None and self._needs_concept():
            seen = grouped(seen, data, together)
        result = self._settle(seen, data)
        if seen.own is not seen.moments and result[2].solver != "closed_form":
            raise InputError(
                "Rows without labels sharpen closed forms only",
                f"solver {result[2].solver!r}",
                "Take rank='auto', or leave them out",
            )
        self._keep(X, seen, first=True)
        self._result = result
        return self

    @available_if(_streams)  # type: ignore[untyped-decorator]
    def partial_fit(
        self,
        X: Any,
        y: Any = None,
        *,
        concept: Any = None,
        sample_weight: Any = None,
        vectors: Any = None,
    ) -> Self:
        """Add a chunk of rows; the result equals one `fit` on all of them.

        Only moments are kept. The erasure is solved for when it is first asked for.

        Parameters
        ----------
        X, y, concept, sample_weight, vectors
            As in `fit`; a chunk may hold a single class, and a class may come late.

        Returns
        -------
        self
        """
        first = not self.__sklearn_is_fitted__()
        self._check_routed(concept)
        X = rows_of_table(X, y, concept, sample_weight, vectors=vectors)
        data = self._check(X, y, concept, sample_weight, whole=False)
        self._check_stream(data.concept)
        if not first:
            self._check_width(data.rows.n_features)
        seen, _ = self._statistics(data, second=self._needs_second())
        seen = replace(seen, columns=columns_of(X))
        self._keep(X, seen if first else self._seen.merge(seen), first=first)
        return self

    def fit_moments(self, moments: Moments, *, fingerprint: Fingerprint | None = None) -> Self:
        """Find what to erase, from moments that somebody else has summed up: a cluster, say.

        For every method that needs nothing else. The result equals `fit` on the rows.

        Parameters
        ----------
        moments : Moments
            Of all rows, with the concept; those of parts are merged by `Moments.merge`.
        fingerprint : Fingerprint, optional
            Of the same rows. Without it an audit cannot tell them from new ones.

        Returns
        -------
        self

        Raises
        ------
        InputError
            Where a method needs more than these moments; it says what.

        Examples
        --------
        >>> import numpy as np
        >>> import expunge as ex
        >>> rng = np.random.default_rng(0)
        >>> Z = rng.normal(size=(300, 1))
        >>> X = rng.normal(size=(300, 4)) + Z
        >>> parts = ex.Moments.of(X[:100], Z[:100]), ex.Moments.of(X[100:], Z[100:])
        >>> eraser = ex.LEACE().fit_moments(parts[0].merge(parts[1]))
        >>> eraser.certificate_.erased
        True
        """
        seen = statistics_of(self, moments, fingerprint)
        check_number(self.strength, "strength", most=1.0)
        self._check_parameters(moments.n_features)
        result = self._settle(seen, None)
        self._keep(np.empty((0, moments.n_features)), seen, first=True)
        self._result = result
        return self

    def transform(self, X: Any, *, out: Any = None) -> NDArray[Any]:
        """Erased rows.

        Parameters
        ----------
        X : array or frame of shape (n, d), or Rows
        out : array of the shape and type of the result, str or path, optional
            Where to write. Rows of a file (see `open_rows`) can be written to another file, with
            all columns beside them.

        Returns
        -------
        array of shape (n, d), or rows of the new file
            Floating types are kept; integers and booleans give float64.
        """
        check_is_fitted(self)
        X = self._table(X)
        rows = check_rows(X, least=1)
        self._check_width(rows.n_features)
        return cast(NDArray[Any], rows.transform(self.erasure_, out))

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_seen")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = self._needs_concept()
        tags.transformer_tags.preserves_dtype = ["float64", "float32", "float16"]
        return tags

    # -- what a fit leaves -----------------------------------------------------------------------

    @property
    def erasure_(self) -> Erasure:
        """The fitted `Erasure`."""
        found = self._settled()[0]
        if isinstance(found, ConditionalErasure):
            raise AttributeError(
                f"{type(self).__name__} needs the concept of every row, so it has no erasure_; "
                "use conditional_erasure_, or transform(X, concept=z)"
            )
        return cast(Erasure, found)

    @property
    def certificate_(self) -> Certificate | None:
        """The `Certificate`, or None where there is no concept."""
        return self._settled()[1]

    @property
    def pool_(self) -> PoolRecord | None:
        """What rows without labels did for the fit; None without any."""
        check_is_fitted(self)
        return self._seen.pool

    @property
    def solver_(self) -> str:
        """What was run."""
        return self._settled()[2].solver

    @property
    def history_(self) -> tuple[Step, ...]:
        """Records of the solver, each with `step` and `value`."""
        return self._settled()[2].history

    @property
    def n_iter_(self) -> int:
        """Iterations of the solver; 1 for closed forms."""
        return max((record.step for record in self.history_), default=1)

    @property
    def rank_(self) -> int:
        """Number of directions erased; columns that become constants by that are not counted."""
        erasure, _, solution = self._settled()
        linear = isinstance(erasure, Erasure)
        return min(solution.left.shape[1], erasure.rank) if linear else erasure.rank

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:  # scikit-learn's name
        plain: str = super().__repr__(N_CHAR_MAX)
        if "_result" not in self.__dict__:
            return plain
        return f"{plain}, fitted: rank {self.rank_} by {self.solver_}"

    # -- inside ----------------------------------------------------------------------------------

    def _second_for_fit(self, data: Data) -> bool:
        """Whether a fit has to form the d x d matrix Sxx on its first pass."""
        return self._needs_second()

    def _check(self, X: Any, y: Any, concept: Any, sample_weight: Any, *, whole: bool) -> Data:
        """Everything a fit is given, through the gate; nothing is stored."""
        refuse_swapped(X, y if concept is None else concept)
        rows = check_rows(X, least=2 if whole else 1, finite=False)  # looked at when they are read
        check_number(self.strength, "strength", most=1.0)
        self._check_parameters(rows.n_features)
        weights = check_weights(sample_weight, rows)
        if not self._needs_concept():
            return Data(rows, Concept.none(rows.n_samples), weights)
        owner, task = type(self).__name__, None
        if self._keeps_task() and concept is not None and y is not None:
            task = check_concept(y, rows, name="y (the task)", owner=owner, whole=whole)
            task = task.with_weight(weights)
        target = check_concept(
            y if concept is None else concept,
            rows,
            concept_type=self.concept_type,
            name="y" if concept is None else "concept",
            owner=owner,
            whole=whole,
        )
        if target.kind not in self.kinds:
            raise InputError(
                f"{owner} erases concepts of kind {', '.join(sorted(self.kinds))} only",
                f"a concept of kind {target.kind!r}",
                "Take LEACE, SAL or RLACE, or say which concept_type it is",
            )
        return Data(rows, target.with_weight(weights), weights, task)

    def _statistics(self, data: Data, *, second: bool) -> tuple[Statistics, Data]:
        """Everything the method needs to know of these rows, in one pass; and the rows.

        Of rows that are not in memory, those that the certificate will look at are kept.
        """
        rows, weights, look = data.rows, data.weights, None
        if not rows.in_memory:
            look = np.union1d(rows_to_look_at(rows.n_samples, weights), rows_that_round(rows))
        found = rows.read(
            data.concept,
            weights,
            second=second,
            task=data.task,
            by_class=self._needs_class_moments(),
            look=look,
        )
        if look is not None:
            data = replace(data, rows=RememberedRows(rows, look, found.look))
        squared = None if weights is None else float(weights @ weights)
        seen = Statistics(
            found.moments,
            found.fingerprint,
            found.task,
            found.by_class,
            squared_weights=squared,
        )
        return seen, data

    def _keep(self, X: Any, seen: Statistics, *, first: bool) -> None:
        """Store a fit, after everything that can fail."""
        self._check_names(frame_of(X), reset=first)
        self.__dict__.pop("_result", None)
        self.n_features_in_ = seen.moments.n_features
        self._seen = seen

    def _table(self, X: Any) -> Any:
        """New rows: of a table, the columns of the fit."""
        found = rows_of_table(X, known=self._seen.columns, in_order=False)
        frame = frame_of(found)
        if columns_of(frame) is None:  # those of files and of a cluster were found by name
            self._check_names(frame, reset=False)
        return found

    def _check_names(self, frame: Any, *, reset: bool) -> None:
        """Remember or compare the names of columns, as scikit-learn does."""
        try:
            _check_feature_names(self, frame, reset=reset)
        except TypeError as error:
            names = sorted({type(name).__name__ for name in frame.columns})
            raise InputError(
                "Some columns have names that are text and others have not",
                f"names of the types {', '.join(names)}",
                "Give all columns text: X.columns = X.columns.astype(str)",
            ) from error

    def _check_routed(self, concept: Any) -> None:
        """Refuse a fit that was promised a concept and got none: y would be erased instead."""
        if concept is not None or not self._needs_concept():
            return
        request = vars(self).get("_metadata_request")  # what `set_fit_request` leaves
        asked = None if request is None else request.fit.requests.get("concept")
        if asked is True or isinstance(asked, str):
            raise InputError(
                f"{type(self).__name__} was told that a concept would come, and none did: y, the "
                "task, would have been erased in its place",
                f"set_fit_request(concept={asked!r}) and no concept",
                f"Pass {'concept' if asked is True else asked}= to fit, as a Pipeline routes it",
            )

    def _check_width(self, n_features: int) -> None:
        check_width(n_features, self.n_features_in_, by=type(self).__name__)

    def _settled(self) -> tuple[Map, Certificate | None, Solution]:
        check_is_fitted(self)
        if "_result" not in vars(self):
            self._result = self._settle(self._seen, None)
        return self._result

    def _settle(
        self, seen: Statistics, data: Data | None
    ) -> tuple[Map, Certificate | None, Solution]:
        """Solve and certify; nothing is stored."""
        if self._certifies():
            check_varies(seen.moments)
        with blas_for(seen.moments.n_features):
            solution = self._solve(seen, data)
            erasure = self._map(seen, solution)
            own = seen.own
            if isinstance(erasure, Erasure) and data is None:
                kept = kept_in_moments(own, erasure)
            elif data is not None:
                kept = kept_in_rows(data.rows, erasure, own, data.concept, data.weights)
            else:
                kept = None
            certificate = self._certify(erasure, own, data, kept)
            if certificate is not None and seen.own is not seen.moments and seen.pool is not None:
                certificate = replace(certificate, rows=_of_labelled_rows(seen.pool))
            if kept is not None and self._certifies():
                caution_of_what_is_left(type(self).__name__, own, kept, stacklevel=3)
                if seen.task is not None:
                    caution_of_stretching(type(self).__name__, kept, stacklevel=3)
            if self._depends_on_units():
                caution_of_units(type(self).__name__, own, stacklevel=3)
            if data is not None and certificate is not None and certificate.erased:
                self._caution_of_rounding(erasure, data, own)
            meta = self._meta(seen, solution, kept)
            return erasure.with_meta(meta), certificate, solution

    def _caution_of_rounding(self, erasure: Map, data: Data, moments: Moments) -> None:
        """Warn where rows of a narrow type will show the concept once they are rounded to it."""
        back = self._put_back(erasure, data, moments)
        if back > 0:
            warnings.warn(
                RoundingShows(
                    "The concept is erased, but rounding the erased rows to the type of X puts "
                    f"about {short(100 * back)} % of it back: some columns lie far from zero for "
                    "their spread, or there are no more rows than columns. Transform X in a wider "
                    "type, or subtract the mean of each column first; certify(..., "
                    "as_transformed=True) measures it"
                ),
                stacklevel=4,
            )

    def _put_back(self, erasure: Map, data: Data, moments: Moments) -> float:
        """The share of what there was to know that rounding to the type of the rows puts back."""
        rows, concept, w = data.rows, data.concept, data.weights
        few = rows.n_samples <= rows.n_features  # a line meets all of them at once
        if few and rows.eps > HALF and isinstance(erasure, Erasure):
            clean = MappedRows(
                rows, lambda A, which: rows.rounded(erasure.transform(A.astype(np.float64)))
            )
            same = Erasure.identity(rows.n_features)
            proof = certify(clean, concept, same, self._loss(moments), weights=w)
            return proof.gap / proof.bound if proof.gap > PUT_BACK * proof.bound else 0.0
        back = rounding_shows(erasure, rows, concept, w, moments=moments, tol=PUT_BACK)
        return back.gap / back.bound if back is not None and back.shows else 0.0

    def _map(self, seen: Statistics, solution: Solution) -> Map:
        """The map of a solution, at the strength asked for."""
        s, moments = self.strength, seen.moments
        if solution.nonlinear is not None:
            return solution.nonlinear.with_(strength=s)
        if solution.shift is None:
            taken = slice(None) if s > 0 else slice(0)  # nothing is read at strength 0
            left, right = s * solution.left[:, taken], solution.right[taken]
            if solution.center is not None:
                left, right = without_digits(left, right, moments)
                if s == 1:
                    left, right = with_emptied_columns(left, right, seen.with_covariances)
            return Erasure(left, right, solution.center)
        return ConditionalErasure(
            solution.shift,
            moments.mean_z,
            moments.mean_x,
            moments.labels,
            moments.kind,
            maps=solution.maps,
            emptied=emptied_when_told(solution.shift, solution.maps, moments),
            strength=s,
        )

    def _certify(
        self, erasure: Map, moments: Moments, data: Data | None, kept: Kept | None
    ) -> Certificate | None:
        if not self._certifies():
            return None
        terms, loss = {**self._certificate_terms(), "kept": kept}, self._loss(moments)
        if isinstance(erasure, NonlinearErasure):
            return self._certify_moved(erasure, moments, data, kept)
        if isinstance(erasure, ConditionalErasure):
            given = (None,) * 3 if data is None else (data.rows, data.concept, data.weights)
            return certify_conditional(erasure, moments, loss, *given, **terms)
        if data is None:
            return certify_moments(moments, erasure, loss, **terms)
        return certify(
            data.rows, data.concept, erasure, loss, weights=data.weights, moments=moments, **terms
        )

    def _certify_moved(
        self, erasure: NonlinearErasure, moments: Moments, data: Data | None, kept: Kept | None
    ) -> Certificate | None:
        """Certificate of the rows that a map gives, whatever it is; None without the rows."""
        if data is None or kept is None:
            return None
        clean = MappedRows(
            data.rows, lambda X, which: erasure.transform(np.asarray(X, dtype=np.float64))
        )
        terms = {**self._certificate_terms(), "kept": kept, "floor": kept.least}
        identity, loss = Erasure.identity(moments.n_features), self._loss(moments)
        return certify(clean, data.concept, identity, loss, weights=data.weights, **terms)

    def _loss(self, moments: Moments) -> Loss:
        """The loss the certificate speaks of."""
        return loss_for("auto", moments.kind, len(moments.labels))

    def _meta(self, seen: Statistics, solution: Solution, kept: Kept | None) -> dict[str, Any]:
        moments = seen.moments
        parameters = {key: jsonable(value) for key, value in self.get_params(deep=False).items()}
        return {
            "method": type(self).__name__,
            "solver": solution.solver,
            "parameters": parameters,
            "concept": {"kind": moments.kind, "labels": list(moments.labels)}
            if self._needs_concept()
            else None,
            "n": seen.own.n,
            "pool": None if seen.pool is None else seen.pool.to_meta(),
            "kept": None if kept is None else kept.to_meta(),
            "fit": fit_record(seen, solution, self.strength, kept) if self._certifies() else None,
            "rows": rows_record(moments),
            **columns_record(seen),
            **({} if seen.seen is None else {"fingerprint": seen.seen.to_meta()}),
            "versions": {"expunge": __version__, "numpy": np.__version__},
        }


def _of_labelled_rows(pool: PoolRecord) -> str:
    """What a certificate says of the rows it is about, where others had a part in the fit."""
    return (
        f"these are the {pool.n_labelled:,} labelled rows alone: removed exactly is the covariance "
        f"estimated with {pool.n_pool:,} rows without labels, which is nearer to that of new rows; "
        "on the labelled ones it leaves their sampling error"
    )
