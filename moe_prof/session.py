"""A session: one measurement on disk, readable on any machine.

A session is a folder::

    manifest.json    schema version, command, scenario, variants, argv, tool versions, machine, seed
    rows.jsonl       rows as they arrive, one a line, so that an interrupted run loses nothing
    metrics.parquet  the same rows, written at the end
    raw/             untouched output of tools, beside their exact command lines (*.command.json)

History of the format: 1: the first.
"""

from __future__ import annotations

import json
import os
import platform
import secrets
import shlex
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from moe_prof import __version__
from moe_prof.errors import InputError, MoeProfError
from moe_prof.rows import Row, from_frame, from_record, to_frame

if TYPE_CHECKING:
    import pandas as pd

SCHEMA = 1
FOLDER_VARIABLE = "MOE_PROF_SESSIONS"
DEFAULT_FOLDER = "moe_prof_sessions"
MANIFEST = "manifest.json"
JOURNAL = "rows.jsonl"
TABLE = "metrics.parquet"
IMPORT_COMMAND = "import"
"""The command whose sessions hold figures of a machine that is not the manifest's."""

RECORDED_VARIABLES = (
    "OMP_NUM_THREADS", "OMP_WAIT_POLICY", "OMP_PROC_BIND", "GOMP_SPINCOUNT", "NUMBA_NUM_THREADS",
    "MOE_PROF_ISA", "CXX", "CXXFLAGS", "LDFLAGS", "MALLOC_ARENA_MAX", "LD_PRELOAD",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a session says of itself.

    ``state`` is ``running``, ``complete``, ``partial`` (interrupted) or ``failed``.
    """

    schema: int
    run_id: str
    command: str
    argv: tuple[str, ...]
    scenario: str
    shape: tuple[int, ...]
    variants: tuple[str, ...]
    seed: int
    state: str
    started: str
    elapsed_s: float | None
    moe_prof_version: str
    python_version: str
    machine: Mapping[str, Any]
    tools: Mapping[str, str]
    environment: Mapping[str, str]
    notes: tuple[str, ...] = ()

    @property
    def program(self) -> str:
        """The program that was measured, its name and its arguments; "" where it was a scenario."""
        if self.scenario or "--" not in self.argv:
            return ""
        name, *arguments = self.argv[self.argv.index("--") + 1 :] or ("",)
        return shlex.join((Path(name).name, *arguments))


class Session:
    """An open session that takes rows and raw files; use as a context manager.

    Leaving the block writes ``metrics.parquet`` and the final state: ``complete``, ``partial``
    after Ctrl-C, ``failed`` after any other exception. A disk that fills up costs what is on disk,
    not the rows in memory: ``trouble`` then says what is missing, "" otherwise.
    """

    def __init__(self, folder: Path, manifest: Manifest) -> None:
        self.folder = folder
        self.manifest = manifest
        self._started_s = time.monotonic()
        self._rows: list[Row] = []
        self.trouble = ""

    @property
    def rows(self) -> tuple[Row, ...]:
        """Rows so far."""
        return tuple(self._rows)

    @property
    def raw(self) -> Path:
        """Folder for untouched tool output."""
        return self.folder / "raw"

    def add(self, rows: Iterable[Row]) -> list[Row]:
        """Stamp rows with the run's id and write them through to disk; returns them."""
        stamped = [replace(row, run_id=self.manifest.run_id) for row in rows]
        self._rows.extend(stamped)
        lines = "".join(json.dumps(asdict(row)) + "\n" for row in stamped)
        with self.writing(), (self.folder / JOURNAL).open("a", encoding="utf-8") as journal:
            journal.write(lines)
        return stamped

    def note(self, text: str) -> None:
        """Add a remark about the run as a whole."""
        self.update(notes=(*self.manifest.notes, text))

    def update(self, **changes: object) -> None:
        """Change manifest fields and write it."""
        self.manifest = replace(self.manifest, **changes)  # type: ignore[arg-type]
        with self.writing():
            _write_manifest(self.folder, self.manifest)

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Around whatever is written into the folder: a failure is kept as the trouble."""
        try:
            yield
        except OSError as error:
            remedy = "free some space, or name another folder with --output"
            self._missing(error.strerror or str(error), remedy)
        except (MemoryError, ImportError) as error:  # pandas and pyarrow need much of both
            words = str(error).partition("\n")[0] or "out of memory"
            self._missing(words, f"{JOURNAL} in it holds the rows")

    def _missing(self, why: str, remedy: str) -> None:
        self.trouble = self.trouble or (
            f"the session in {self.folder} is incomplete: {why}; {remedy}"
        )

    def __enter__(self) -> Session:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is None:
            self.finish("partial" if self.manifest.state == "partial" else "complete")
            return
        self.finish("partial" if isinstance(error, KeyboardInterrupt) else "failed")
        if self.trouble:
            error.add_note(self.trouble)
        elif any(row.value is not None for row in self._rows):
            error.add_note(f"what was measured so far is in {self.folder}")

    def finish(self, state: str) -> None:
        """Write the rows as parquet and the final state; interrupted in that, ``partial``."""
        try:
            with self.writing():
                _write_table(self.folder / TABLE, self._rows)
        except KeyboardInterrupt as error:
            error.add_note(f"what was measured is in {self.folder}")
            state = "partial"
            raise
        finally:
            self.update(state=state, elapsed_s=round(time.monotonic() - self._started_s, 3))


@dataclass(frozen=True, slots=True)
class SavedSession:
    """A session read back: its manifest and rows, and which of its files is damaged, or ""."""

    folder: Path
    manifest: Manifest
    rows: tuple[Row, ...]
    damage: str = ""

    def __repr__(self) -> str:
        """A line, not thousands of rows."""
        told = self.manifest
        what = " ".join(filter(None, (told.command, told.scenario, *told.variants)))
        return f"<session {self.folder.name}: {what}, {len(self.rows)} rows, {told.state}>"

    @property
    def remarks(self) -> tuple[str, ...]:
        """What a reader of its figures has to know: that it did not end, that a file is damaged."""
        found = [self.damage] if self.damage else []
        if self.manifest.state != "complete":
            found.append(f"{self.folder}: the run is {self.manifest.state}, so rows may be missing")
        return tuple(found)

    @property
    def frame(self) -> pd.DataFrame:
        """The rows as a tidy pandas frame."""
        return to_frame(self.rows)


def create(
    command: str,
    *,
    scenario: str,
    shape: tuple[int, ...],
    variants: tuple[str, ...],
    seed: int,
    machine: Mapping[str, Any],
    tools: Mapping[str, str],
    argv: Sequence[str],
    folder: Path | None = None,
) -> Session:
    """Make the folder and its manifest.

    Args:
        tools: version by name of what can have a part in the run.
        argv: the command line without the program's name.
        folder: the session's own folder; by default a new one inside ``$MOE_PROF_SESSIONS`` or
            ``moe_prof_sessions`` below the current folder.

    Raises:
        MoeProfError: the folder cannot be written, or holds a session or other files.
    """
    run_id = f"{time.strftime('%Y%m%d-%H%M%S')}-{secrets.token_hex(3)}"
    if folder is None:
        base = Path(os.environ.get(FOLDER_VARIABLE, DEFAULT_FOLDER))
        folder = base / f"{run_id}-{command}-{scenario.replace(',', 'x') or 'command'}"
    manifest = Manifest(
        schema=SCHEMA,
        run_id=run_id,
        command=command,
        argv=tuple(argv),
        scenario=scenario,
        shape=shape,
        variants=variants,
        seed=seed,
        state="running",
        started=time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        elapsed_s=None,
        moe_prof_version=__version__,
        python_version=platform.python_version(),
        machine=dict(machine),
        tools=dict(tools),
        environment={k: os.environ[k] for k in RECORDED_VARIABLES if k in os.environ},
    )
    _make_folder(folder, manifest)
    return Session(folder, manifest)


def _make_folder(folder: Path, manifest: Manifest) -> None:
    try:
        _check_empty(folder)
        (folder / "raw").mkdir(parents=True, exist_ok=True)
        _write_manifest(folder, manifest)
    except OSError as error:
        raise MoeProfError(
            f"cannot write the session folder {folder}: {error.strerror}; "
            f"name a writable one with --output or {FOLDER_VARIABLE}"
        ) from error


def _check_empty(folder: Path) -> None:
    """A session gets a folder of its own: none of its files may mix with others."""
    if (folder / MANIFEST).exists():
        raise MoeProfError(f"{folder} already holds a session; choose another --output")
    first = min(folder.iterdir(), default=None) if folder.is_dir() else None
    if first is not None:
        raise MoeProfError(
            f"{folder} is a folder with other files ({first.name}, ...); name a new or an empty "
            "one with --output"
        )


def load(folder: str | Path) -> SavedSession:
    """Read a session back, also one that was interrupted before its end.

    Raises:
        InputError: the folder is no session, or was written by a newer schema.
    """
    path = Path(folder)
    try:
        data: Any = json.loads((path / MANIFEST).read_text(encoding="utf-8"))
    except FileNotFoundError:
        why = "it has no manifest.json" if path.exists() else "there is no such folder"
        raise InputError(f"{path} is not a session: {why}") from None
    except NotADirectoryError:
        raise InputError(f"{path} is not a session: it is a file, not a folder") from None
    except (OSError, ValueError) as error:
        raise InputError(f"{path / 'manifest.json'} cannot be read: {error}") from error
    if not isinstance(data, dict) or not isinstance(data.get("schema"), int):
        raise InputError(f"{path / 'manifest.json'} is not a moe_prof manifest")
    if data["schema"] > SCHEMA:
        raise InputError(
            f"{path} has schema {data['schema']}, this moe_prof reads up to {SCHEMA}; update it"
        )
    try:
        manifest = Manifest(**{str(key): _tupled(value) for key, value in data.items()})
    except TypeError as error:
        raise InputError(f"{path / 'manifest.json'} lacks or adds fields: {error}") from error
    wrong = _wrong_field(manifest)
    if wrong:
        raise InputError(f"{path / 'manifest.json'} is damaged: {wrong} is of another type")
    rows, damage = _load_rows(path)
    if not (path / TABLE).exists() and manifest.state == "complete":
        missing = f"{path / TABLE} is missing though the run is complete: rows may be missing"
        damage = f"{missing}; {damage}" if damage else missing
    return SavedSession(path, manifest, tuple(rows), damage)


def _wrong_field(manifest: Manifest) -> str:
    """The first field that holds something else than it should, or ""."""
    texts = ("run_id", "command", "scenario", "state", "started", "moe_prof_version")
    for name in texts:
        if not isinstance(getattr(manifest, name), str):
            return name
    for name, kind in (("argv", str), ("variants", str), ("notes", str), ("shape", int)):
        value = getattr(manifest, name)
        if not isinstance(value, tuple) or not all(isinstance(one, kind) for one in value):
            return name
    for name in ("machine", "tools", "environment"):
        if not isinstance(getattr(manifest, name), dict):
            return name
    return "" if isinstance(manifest.seed, int) else "seed"


def _load_rows(path: Path) -> tuple[list[Row], str]:
    """The rows, and what was wrong with the file that should have held them."""
    table, journal, damage = path / TABLE, path / JOURNAL, ""
    if table.exists():
        import pandas as pd  # noqa: PLC0415  (slow to import)

        try:
            return from_frame(pd.read_parquet(table)), ""
        except (OSError, TypeError, ValueError) as error:
            if not journal.exists():
                raise InputError(f"{table} cannot be read: {error}") from error
            first = str(error).partition("\n")[0]
            damage = f"{table} cannot be read ({first}); its rows are taken from {JOURNAL}"
    if not journal.exists():
        return [], damage
    rows, cut_off = _journal_rows(journal)
    if cut_off:
        damage = f"{journal} is cut off; the {len(rows)} rows before that are read"
    return rows, damage


def _journal_rows(journal: Path) -> tuple[list[Row], bool]:
    """Its rows, and whether the last line is cut off: the run was killed while it wrote that."""
    rows: list[Row] = []
    try:
        lines = journal.read_text(encoding="utf-8", errors="replace").splitlines()
        for line in lines:
            rows.append(from_record(json.loads(line)))
    except json.JSONDecodeError:
        return rows, True
    except (OSError, TypeError, ValueError) as error:
        raise InputError(f"{journal} cannot be read: {error}") from error
    return rows, False


def _write_manifest(folder: Path, manifest: Manifest) -> None:
    target = folder / MANIFEST
    temporary = folder / f"{MANIFEST}.tmp"
    temporary.write_text(json.dumps(asdict(manifest), indent=1) + "\n", encoding="utf-8")
    temporary.replace(target)


def _write_table(path: Path, rows: Sequence[Row]) -> None:
    """All rows or no file: a table that was cut off would hide the journal."""
    temporary = path.with_suffix(".tmp")
    try:
        to_frame(rows).to_parquet(temporary, index=False)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def _tupled(value: Any) -> Any:  # noqa: ANN401  (any JSON value)
    return tuple(value) if isinstance(value, list) else value
