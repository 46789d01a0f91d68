"""Measure the tests by mutation: break the source at random and see whether a test turns red.

    python scripts/mutate.py --count 200 --seed 0
    python scripts/mutate.py --only game/losses --count 40 --seed 1
    python scripts/mutate.py --again results.json          the survivors of an earlier run

A mutant is the source with one small change. What cannot change behaviour is left alone: strings,
annotations, imports, decorators, asserts, what is passed to `raise` and to `warnings.warn`,
keywords that only check or save work, seeds, the order in which a maximum takes its arguments, None
for a False that is returned, one more of a size at the top of a module (`LARGE`), one more try of a
loop that leaves when it is done, and whether a threshold that has a name or is a product
(`x <= LIMIT`, `x <= 2 * target`) counts itself. A number becomes one more, as in mutmut and
cosmic-ray.

Tests are found by a rule: those that mirror a module (tests/game for src/expunge/game,
tests/test_moments*.py for moments.py) and those in `SHARED`, for whatever is fitted. They run once
under a tracer, file by file, which gives the lines and the time of each; that is kept until the
source or the file changes. Slow ones are left out, and of a file that takes long some of the
parameters.
A mutant meets only the tests that run its line, up to `--budget` seconds of those of its own module
and as many of the others: one of each function before a second one, quick ones before slow ones. It
is killed by the first that fails.

Every mutant runs in a child forked from one process that has all third-party packages loaded, on a
copy of the source that comes first in PYTHONPATH. Times are CPU seconds, so that a busy machine
kills nothing. Needs a system that can fork.
"""

from __future__ import annotations

import argparse
import ast
import compileall
import contextlib
import copy
import hashlib
import importlib
import itertools
import json
import os
import random
import resource
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent
SOURCE, TESTS = ROOT / "src", ROOT / "tests"
TARGETS = ("moments", "erasure", "game", "erasers")
SHARED = ("erasers", "pooling", "folding", "laws", "fuzz/test_regressions.py", "test_doctests.py")
CACHE = Path(tempfile.gettempdir()) / f"expunge-mutation-{os.getuid()}"
HARMLESS = {
    "strict",
    "check_finite",
    "stacklevel",
    "copy",
    "overwrite_a",
    "overwrite_b",
    "optimize",
    "hermitian",
}
COMMUTATIVE = {
    "max",
    "min",
    "np.maximum",
    "np.minimum",
    "np.clip",
    "np.logaddexp",
    "np.array_equal",
}
LARGE = 10  # a whole number at the top of a module from which on one more is none
OPTIONS = ["-x", "-q", "-pno:cacheprovider", "-pno:xdist", "-Wignore::pytest.PytestWarning"]
SLOW, ENOUGH = 4, 40  # seconds under the tracer after which a test, and the rest of a file, is left
MEMORY = 16 << 30  # a mutant may ask for much more than the original

COMPARISONS = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
ARITHMETIC = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.Pow: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv,
}


# -- mutants ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Mutant:
    """One change: the text between two places of a file, and what stands there instead."""

    path: str
    line: int
    start: int
    stop: int
    kind: str
    new: str
    lines: tuple[int, ...]  # lines whose tests can see it; none means all tests of the file

    @property
    def name(self) -> str:
        """What it is called in results."""
        return f"{self.path}:{self.line}:{self.start}-{self.stop} {self.kind} {self.new!r}"

    def source(self) -> bytes:
        """The file with the change."""
        text = (SOURCE / self.path).read_bytes()
        return text[: self.start] + self.new.encode() + text[self.stop :]

    def diff(self) -> str:
        """The changed lines, before and after."""
        text = (SOURCE / self.path).read_bytes()
        lo = text.rfind(b"\n", 0, self.start) + 1
        hi = text.find(b"\n", self.stop)
        before = text[lo:hi].decode()
        after = (text[lo : self.start] + self.new.encode() + text[self.stop : hi]).decode()
        lines = [f"    - {line}" for line in before.splitlines()]
        return "\n".join([f"  {self.path}:{self.line} ({self.kind})", *lines]) + "".join(
            f"\n    + {line}" for line in after.splitlines()
        )


class Finder(ast.NodeVisitor):
    """All mutants of one file."""

    def __init__(self, path: Path) -> None:
        self.path = str(path.relative_to(SOURCE))
        text = path.read_bytes()
        self.tree = ast.parse(text)
        self.offsets = [0]
        for line in text.split(b"\n"):
            self.offsets.append(self.offsets[-1] + len(line) + 1)
        self.functions: list[ast.AST] = []
        self.seen_by: list[tuple[int, ...]] = [()]
        self.found: list[Mutant] = []
        self.numbers: set[ast.AST] = set()
        assigned = [node for node in self.tree.body if isinstance(node, ast.Assign)]
        self.constants = {ast.unparse(target) for node in assigned for target in node.targets}
        self.uses = defaultdict(list)  # name -> lines of functions that read it
        for function in ast.walk(self.tree):
            if isinstance(function, ast.FunctionDef | ast.Lambda):
                for node in ast.walk(function):
                    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                        self.uses[node.id].append(node.lineno)
        self.visit(self.tree)

    def add(self, node: Any, kind: str, new: ast.AST | str) -> None:
        """Note that `new` may stand for `node`."""
        start = self.offsets[node.lineno - 1] + node.col_offset
        stop = self.offsets[node.end_lineno - 1] + node.end_col_offset
        lines = self.seen_by[-1]
        if self.functions and not lines:
            lines = tuple(range(node.lineno, node.end_lineno + 1))
        if isinstance(new, ast.AST):
            new = ast.unparse(ast.fix_missing_locations(new))
            new = f"({new})" if isinstance(node, ast.expr) else new
        self.found.append(Mutant(self.path, node.lineno, start, stop, kind, new, lines))

    def with_change(self, node: Any, kind: str, **fields: Any) -> None:
        """Note a copy of the node with other fields."""
        new = copy.copy(node)
        for key, value in fields.items():
            setattr(new, key, value)
        self.add(node, kind, new)

    # what is not mutated

    def ignore(self, node: ast.AST) -> None:
        """Strings, imports, asserts."""

    visit_JoinedStr = visit_Import = visit_ImportFrom = visit_Assert = ignore  # type: ignore[assignment]

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        """Only the value."""
        if node.value is not None:
            with self.watched_by(node.target):
                self.visit(node.value)

    def visit_Raise(self, node: ast.Raise) -> None:
        """Only whether it is raised."""
        self.add(node, "statement dropped", "pass")

    def visit_keyword(self, node: ast.keyword) -> None:
        """Those that only check or save work are left alone."""
        if node.arg not in HARMLESS:
            self.generic_visit(node)

    # scopes

    @contextlib.contextmanager
    def watched_by(self, target: ast.AST | None) -> Iterator[None]:
        """At module level, a constant is seen by the lines that read it."""
        lines: tuple[int, ...] = ()
        if not self.functions and isinstance(target, ast.Name):
            lines = tuple(self.uses[target.id])
        self.seen_by.append(lines)
        yield
        self.seen_by.pop()

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        """Defaults are seen by the whole body."""
        last = node.end_lineno or node.lineno
        self.functions.append(node)
        self.seen_by.append(tuple(range(node.body[0].lineno, last + 1)))
        for default in [*node.args.defaults, *filter(None, node.args.kw_defaults)]:
            self.visit(default)
        self.seen_by[-1] = ()
        for statement in node.body:
            self.visit(statement)
        self.seen_by.pop()
        self.functions.pop()

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        """The body alone."""
        for statement in node.body:
            self.visit(statement)

    def visit_If(self, node: ast.If) -> None:
        """The condition may be the other way round."""
        if "TYPE_CHECKING" not in ast.unparse(node.test):
            self.add(node.test, "condition negated", f"(not ({ast.unparse(node.test)}))")
            self.generic_visit(node)

    # what is mutated

    def visit_IfExp(self, node: ast.IfExp) -> None:
        """Likewise."""
        self.add(node.test, "condition negated", f"(not ({ast.unparse(node.test)}))")
        self.generic_visit(node)

    def visit_For(self, node: ast.For) -> None:
        """How often a loop may try that leaves when it is done is left alone."""
        leaves = any(isinstance(n, ast.Break | ast.Return) for n in ast.walk(node))
        if not (leaves and ast.unparse(node.target) == "_" and _is_count(node.iter)):
            self.visit(node.iter)
        for statement in [*node.body, *node.orelse]:
            self.visit(statement)

    def visit_Compare(self, node: ast.Compare) -> None:
        """Another comparison; whether a threshold counts itself is left alone."""
        sides = {n.id for n in [node.left, *node.comparators] if isinstance(n, ast.Name)}
        parts = [node.left, *node.comparators]
        named = not sides.isdisjoint(self.constants) or any(map(_is_scaled, parts))
        for i, op in enumerate(node.ops):
            others = COMPARISONS[type(op)]
            for other in others[1:] if named and len(others) > 1 else others:
                self.with_change(
                    node, "comparison", ops=[*node.ops[:i], other(), *node.ops[i + 1 :]]
                )
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        """Another operation, or a product the other way round."""
        if type(node.op) in ARITHMETIC and not _is_text(node.left) and not _is_text(node.right):
            self.with_change(node, "arithmetic", op=ARITHMETIC[type(node.op)]())
        elif isinstance(node.op, ast.MatMult) and node not in self.numbers:
            self.with_change(node, "product turned", left=node.right, right=node.left)
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        """And for or."""
        other = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        self.with_change(node, "and/or", op=other)
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        """Without the sign or the negation."""
        self.add(node, "sign or negation dropped", node.operand)
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        """Another number."""
        value, at_top = node.value, not self.functions
        if isinstance(value, bool):
            self.add(node, "constant", repr(not value))
        elif isinstance(value, int | float) and not (
            at_top and type(value) is int and value >= LARGE
        ):
            self.add(node, "constant", repr(value + 1))

    def visit_Return(self, node: ast.Return) -> None:
        """None instead."""
        if node.value is not None and not _is_none(node.value):
            if not (isinstance(node.value, ast.Constant) and node.value.value is False):
                self.add(node.value, "return value", "None")
            self.visit(node.value)

    def visit_Expr(self, node: ast.Expr) -> None:
        """A call for its effect is dropped; what is said in a warning is left alone."""
        if isinstance(node.value, ast.Call):
            self.add(node, "statement dropped", "pass")
            if ast.unparse(node.value.func) != "warnings.warn":
                self.visit(node.value)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        """Another operation, or none."""
        self.add(node, "statement dropped", "pass")
        if type(node.op) in ARITHMETIC and not _is_text(node.value):
            self.with_change(node, "arithmetic", op=ARITHMETIC[type(node.op)]())
        self.generic_visit(node)

    def visit_Assign(self, node: ast.Assign) -> None:
        """Dropped where the name has a value without it."""
        target, value = node.targets[0], node.value
        if isinstance(target, ast.Name) and target.id == "__all__":
            return
        names = {n.id for n in ast.walk(value) if isinstance(n, ast.Name)}
        kept = isinstance(target, ast.Name) and target.id in names
        if self.functions and (kept or isinstance(target, ast.Attribute | ast.Subscript)):
            self.add(node, "statement dropped", "pass")
        with self.watched_by(target):
            self.generic_visit(node)

    def visit_Break(self, node: ast.Break | ast.Continue) -> None:
        """The loop goes on."""
        self.add(node, "statement dropped", "pass")

    visit_Continue = visit_Break  # type: ignore[assignment]

    def visit_Slice(self, node: ast.Slice) -> None:
        """A bound off by one."""
        for bound in filter(None, (node.lower, node.upper)):
            if not _is_none(bound):
                self.add(bound, "slice", f"({ast.unparse(bound)}) + 1")
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        """The first two arguments the other way round."""
        if ast.unparse(node.func) == "np.random.default_rng":
            return  # any seed is as good
        if ast.unparse(node.func) == "float" and isinstance(node.args[0], ast.BinOp):
            self.numbers.add(node.args[0])  # of two vectors, if it is a product
        plain = not any(isinstance(a, ast.Starred) for a in node.args[:2])
        same = {"isinstance", "getattr", "hasattr"} | COMMUTATIVE
        if len(node.args) >= 2 and plain and ast.unparse(node.func) not in same:
            first, second, *rest = node.args
            self.with_change(node, "arguments swapped", args=[second, first, *rest])
        self.generic_visit(node)


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.JoinedStr) or (
        isinstance(node, ast.Constant) and isinstance(node.value, str)
    )


def _is_scaled(node: ast.AST) -> bool:
    """Whether it is a product of real numbers, or a sum with one, equal to others by chance."""
    if not isinstance(node, ast.BinOp):
        return False
    if isinstance(node.op, ast.Add | ast.Sub):
        return _is_scaled(node.left) or _is_scaled(node.right)
    return isinstance(node.op, ast.Mult | ast.Div)


def _is_count(node: ast.AST) -> bool:
    """Whether this is `range` of a number."""
    return isinstance(node, ast.Call) and [type(a) for a in node.args] == [ast.Constant]


def _is_none(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def mutants(only: str) -> list[Mutant]:
    """Every mutant of the targets."""
    found = []
    for path in sorted((SOURCE / "expunge").rglob("*.py")):
        inside = path.relative_to(SOURCE / "expunge")
        if inside.parts[0].removesuffix(".py") in TARGETS and only in str(inside):
            found += Finder(path).found
    return found


def is_other_code(mutant: Mutant) -> bool:
    """Whether it compiles, and to something else."""
    try:
        new = ast.parse(mutant.source())
    except SyntaxError:
        return False
    return ast.dump(new) != ast.dump(ast.parse((SOURCE / mutant.path).read_bytes()))


def draw(everything: list[Mutant], count: int, seed: int) -> list[Mutant]:
    """Mutants at random, all equally likely."""
    order = random.Random(seed).sample(everything, len(everything))
    return list(itertools.islice(filter(is_other_code, order), count))


# -- tests -----------------------------------------------------------------------------------------


@dataclass
class Test:
    """One test: its file, its name as pytest has it, its time and the lines it runs."""

    file: str
    node: str
    seconds: float
    lines: dict[str, set[int]]


def files_for(paths: set[str]) -> list[Path]:
    """Test files that mirror these modules, and the shared ones."""
    stops = {Path(path).relative_to("expunge").parts[0].removesuffix(".py") for path in paths}
    found = {file for stop in stops for file in TESTS.glob(f"test_{stop}*.py")}
    for place in [*stops, *SHARED]:
        here = TESTS / place
        found |= {here} if here.is_file() else set(here.rglob("test_*.py"))
    return sorted(found)


class Tracer:
    """A pytest plugin that notes for each test which lines of the targets it runs."""

    def __init__(self, root: str) -> None:
        self.root, self.tests, self.now = root, {}, {}  # type: ignore[var-annotated]
        self.failed: set[str] = set()
        self.begun = time.process_time()
        self.names: dict[str, str | None] = {}

    def inside(self, file: str) -> str | None:
        """The path of a target below the source, None for any other file."""
        if file not in self.names:
            short = file[len(self.root) + 1 :] if file.startswith(self.root) else ""
            stop = short.split("/")[1].removesuffix(".py") if "/" in short else ""
            self.names[file] = short if stop in TARGETS else None
        return self.names[file]

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        """One of each function before a second one, since not all may be run."""
        turn: Counter[str] = Counter()
        for item in items:
            name = item.nodeid.split("[")[0]
            item.turn = turn[name]
            turn[name] += 1
        items.sort(key=lambda item: item.turn)

    def enter(self, frame: Any, event: str, arg: Any) -> Any:
        """Called at every call of a function."""
        name = self.inside(frame.f_code.co_filename)
        if name is None:
            return None
        lines = self.now.setdefault(name, set())

        def step(frame: Any, event: str, arg: Any) -> Any:
            lines.add(frame.f_lineno)
            return step

        return step

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: Any) -> Any:
        """Watch one test."""
        self.now, start = {}, time.process_time()
        signal.signal(signal.SIGVTALRM, self.give_up)
        signal.setitimer(signal.ITIMER_VIRTUAL, SLOW)
        threading.settrace(self.enter)
        sys.settrace(self.enter)
        try:
            return (yield)
        finally:
            sys.settrace(None)
            threading.settrace(None)  # type: ignore[arg-type]
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)
            if time.process_time() - self.begun > ENOUGH:
                item.session.shouldstop = "enough"
            lines = {name: sorted(found) for name, found in self.now.items()}
            self.tests[item.nodeid] = (time.process_time() - start, lines)

    def give_up(self, *_: Any) -> None:
        """End a test that takes too long."""
        pytest.skip("slow")

    def pytest_runtest_logreport(self, report: Any) -> None:
        """What fails or is skipped by itself can kill nothing."""
        if report.outcome != "passed":
            self.failed.add(report.nodeid)


class Chosen:
    """A pytest plugin that runs some tests, in a given order, each for a limited time."""

    def __init__(self, tests: list[Test], report: Path) -> None:
        self.order = {test.node: i for i, test in enumerate(tests)}
        self.limits = {test.node: 20 + 10 * test.seconds for test in tests}
        self.report = report

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        """Only these, in this order."""
        items[:] = sorted(
            (i for i in items if i.nodeid in self.order), key=lambda i: self.order[i.nodeid]
        )

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: Any) -> Any:
        """A test that takes too long ends the process."""
        signal.setitimer(signal.ITIMER_VIRTUAL, self.limits[item.nodeid])
        try:
            return (yield)
        finally:
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Say which test failed."""
        if report.failed:
            self.report.write_text(report.nodeid)


def in_child(copy_of_source: Path, log: Path, work: Callable[[], int]) -> int:
    """Fork, and do the work with the copy of the source first on the path; the process id."""
    sys.stdout.flush()
    child = os.fork()
    if child:
        return child
    code = 70
    try:
        os.setpgrp()
        out = os.open(log, os.O_CREAT | os.O_WRONLY | os.O_TRUNC)
        os.dup2(out, 1)
        os.dup2(out, 2)
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        os.environ["PYTHONPATH"] = str(copy_of_source)
        os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
        sys.dont_write_bytecode = True
        sys.path.insert(0, str(copy_of_source))
        os.chdir(ROOT)
        code = work()
    finally:
        os._exit(code)


def survey(files: list[Path], source: Path, work: Path) -> list[Test]:
    """The tests of these files with their lines and times, traced anew where something changed."""
    CACHE.mkdir(exist_ok=True)
    state = b"".join(p.read_bytes() for p in sorted((SOURCE / "expunge").rglob("*.py")))
    state += b"".join(p.read_bytes() for p in sorted(TESTS.glob("*.py")) if "test_" not in p.name)
    found, loaded = [], set()
    for file in files:
        helpers = [p for p in sorted(file.parent.glob("*.py")) if "test_" not in p.name]
        text = state + b"".join(p.read_bytes() for p in [file, *helpers])
        cached = CACHE / f"{hashlib.sha256(text + __file__.encode()).hexdigest()[:20]}.json"
        if not cached.exists():
            _trace(file, source, work, cached)
        known = json.loads(cached.read_text())
        loaded |= {*known["modules"]}
        for node, (seconds, lines) in known["tests"].items():
            where = {name: {*numbers} for name, numbers in lines.items()}
            found.append(Test(str(file), node, seconds, where))
    for name in sorted(loaded):
        with contextlib.suppress(Exception):
            importlib.import_module(name)
    return found


def _trace(file: Path, source: Path, work: Path, cached: Path) -> None:
    def run() -> int:
        tracer = Tracer(str(source))
        options = [option for option in OPTIONS if option != "-x"]
        code = int(pytest.main([str(file), *options], plugins=[tracer]))
        tests = {node: t for node, t in tracer.tests.items() if node not in tracer.failed}
        modules = [
            name
            for name, module in sys.modules.items()
            if "site-packages" in (getattr(module, "__file__", None) or "")
        ]
        cached.write_text(json.dumps({"tests": tests, "modules": modules}))
        return code

    print(f"tracing {file.relative_to(ROOT)}", end=" ", flush=True)
    start = time.monotonic()
    _, status = os.waitpid(in_child(source, work / "trace.log", run), 0)
    lines = (work / "trace.log").read_text().strip().splitlines()
    print(f"{time.monotonic() - start:.0f} s: {lines[-1] if lines else status}", flush=True)
    if not cached.exists():
        raise SystemExit("\n".join(lines))


def tests_of(mutant: Mutant, tests: list[Test], budget: float) -> list[Test]:
    """Those that run its lines: one of each function first, quick ones first."""
    chosen, own = [], f"test_{Path(mutant.path).stem}"
    for test in tests:
        ran = test.lines.get(mutant.path, set())
        anywhere = not mutant.lines and (ran or own in test.file)
        if anywhere or not ran.isdisjoint(mutant.lines):
            chosen.append(test)
    turn: Counter[str] = Counter()
    ordered = []
    for test in sorted(chosen, key=lambda test: test.seconds):
        function = test.node.split("[")[0]
        ordered.append((turn[function], test.seconds, test.node, test))
        turn[function] += 1
    spent, by_file, kept = Counter[bool](), Counter[str](), []
    for _, seconds, _, test in sorted(ordered, key=lambda entry: entry[:3]):
        near = own in test.file
        if spent[near] <= budget:
            spent[near] += seconds
            by_file[test.file] += seconds
            kept.append(test)
    return sorted(kept, key=lambda test: (own not in test.file, by_file[test.file], test.file))


# -- running ---------------------------------------------------------------------------------------


class Slot:
    """A copy of the source in which one mutant at a time is tried."""

    def __init__(self, work: Path, number: int) -> None:
        self.source, self.work = work / f"src{number}", work
        self.log, self.report = work / f"log{number}", work / f"failed{number}"
        shutil.copytree(SOURCE, self.source, ignore=shutil.ignore_patterns("__pycache__"))
        compileall.compile_dir(self.source, quiet=2)
        self.mutant: Mutant | None = None
        self.child, self.begun = 0, 0.0

    def start(self, mutant: Mutant, tests: list[Test]) -> None:
        """Begin to try a mutant."""
        (self.source / mutant.path).write_bytes(mutant.source())
        self.report.unlink(missing_ok=True)
        files = list(dict.fromkeys(test.file for test in tests))
        self.mutant, self.begun = mutant, time.monotonic()

        def run() -> int:
            chosen = Chosen(tests, self.report)
            codes = (int(pytest.main([file, *OPTIONS], plugins=[chosen])) for file in files)
            return next(filter(None, codes), 0)  # one file is read only if those before it passed

        self.child = in_child(self.source, self.log, run)

    def outcome(self) -> tuple[str, str] | None:
        """What became of it, and by which test; None while it runs."""
        done, status = os.waitpid(self.child, os.WNOHANG)
        if not done and time.monotonic() - self.begun < 900:
            return None
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.child, signal.SIGKILL)
        if not done:
            os.waitpid(self.child, 0)
        assert self.mutant is not None
        shutil.copyfile(SOURCE / self.mutant.path, self.source / self.mutant.path)
        by = self.report.read_text() if self.report.exists() else ""
        if not done:
            return "undecided", by  # a machine so busy proves nothing
        if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGVTALRM:
            return "timeout", by
        return ("survived" if os.waitstatus_to_exitcode(status) == 0 else "killed"), by


def run_all(chosen: list[Mutant], tests: list[Test], slots: list[Slot], budget: float) -> Any:
    """Outcomes of all mutants, in the order in which they end."""
    waiting, busy = list(chosen), []
    while waiting or busy:
        free = [slot for slot in slots if slot not in busy]
        while waiting and free:
            mutant = waiting.pop(0)
            meeting = tests_of(mutant, tests, budget)
            if not meeting:
                yield mutant, "survived", "no test runs this line"
                continue
            slot = free.pop()
            slot.start(mutant, meeting)
            busy.append(slot)
        time.sleep(0.02)
        for slot in list(busy):
            ended = slot.outcome()
            if ended is not None:
                busy.remove(slot)
                yield slot.mutant, *ended


def table(results: list[tuple[Mutant, str, str]]) -> str:
    """Outcomes per module."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for mutant, outcome, _ in results:
        for row in (mutant.path.removeprefix("expunge/"), "all"):
            counts[row][outcome] += 1
    heads = ("mutants", "killed", "timeout", "survived", "died")
    lines = [f"{'module':32} {' '.join(f'{head:>8}' for head in heads)}"]
    for name, count in sorted(counts.items(), key=lambda item: (item[0] == "all", item[0])):
        total, left = count.total() - count["undecided"], count["survived"]
        lines.append(
            f"{name:32} {total:8} {count['killed']:8} {count['timeout']:8} {left:8} "
            f"{100 * (total - left) / max(total, 1):7.1f}%"
        )
    return "\n".join(lines)


def main() -> None:
    """Draw mutants, try each, print what became of them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=200, help="how many mutants to draw")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="only files whose path contains this")
    parser.add_argument("--jobs", type=int, default=1, help="mutants tried at once")
    parser.add_argument("--budget", type=float, default=60, help="seconds of tests for a mutant")
    parser.add_argument("--out", type=Path, help="where to write the results as JSON")
    parser.add_argument("--again", type=Path, help="results of which to try the survivors")
    options = parser.parse_args()

    everything = mutants(options.only)
    print(f"{len(everything)} mutants in all")
    if options.again:
        old = json.loads(options.again.read_text())
        names = {name for name, outcome, _ in old if outcome == "survived"}
        chosen = [mutant for mutant in everything if mutant.name in names]
    else:
        chosen = draw(everything, options.count, options.seed)
    with tempfile.TemporaryDirectory() as folder:
        slots = [Slot(Path(folder), number) for number in range(options.jobs)]
        files = files_for({mutant.path for mutant in chosen})
        tests = survey(files, slots[0].source, Path(folder))
        results = []
        for mutant, outcome, by in run_all(chosen, tests, slots, options.budget):
            results.append((mutant, outcome, by))
            print(f"{len(results):4} {outcome:9} {mutant.name}  [{by}]", flush=True)
            if outcome == "survived":
                print(mutant.diff(), flush=True)
            if options.out:
                plain = [(mutant.name, outcome, by) for mutant, outcome, by in results]
                options.out.write_text(json.dumps(plain, indent=1))
    print(f"\n{table(results)}\n")
    survivors = [mutant for mutant, outcome, _ in results if outcome == "survived"]
    print("\n".join(["Survivors:", *(mutant.diff() for mutant in survivors)]))


if __name__ == "__main__":
    main()
