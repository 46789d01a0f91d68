"""How many rows the record batches of an Arrow file have, without reading them.

A stream is a sequence of messages, each a small table of offsets (a flatbuffer) and a body; a file
has such messages too, and a list of them at its end. Only the tables are read here. The fields
looked at are those of Message.fbs and File.fbs, in the order these declare them.
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import IO, NamedTuple

from expunge.files.table import truncated, unreadable

__all__ = ["MAGIC", "BatchHead", "record_batches"]

MAGIC = b"ARROW1\0\0"
CONTINUES = b"\xff\xff\xff\xff"
RECORD_BATCH = 3  # among the kinds of messages
CODECS = ("lz4", "zstd")
LONGEST = 1 << 28
TAIL = 10  # bytes of the length of a footer, and of the mark after it
BLOCK = 24  # bytes of an entry of its list


class BatchHead(NamedTuple):
    """What is known of a record batch from its head."""

    rows: int
    codec: str | None


def record_batches(path: Path) -> list[BatchHead]:
    """Heads of all record batches of a file or stream.

    Parameters
    ----------
    path : Path

    Returns
    -------
    list of BatchHead

    Raises
    ------
    InputError
        For a file that ends too early, or is none of Arrow's.
    """
    with path.open("rb") as stream:
        listed = stream.read(len(MAGIC)) == MAGIC
        return _listed(path, stream) if listed else _one_by_one(path, stream)


def _listed(path: Path, stream: IO[bytes]) -> list[BatchHead]:
    """Batches of a file, which lists them at its end: offset, length of the head, of the body."""
    size = path.stat().st_size
    stream.seek(max(0, size - TAIL))
    tail = stream.read(TAIL)
    length = int.from_bytes(tail[:4], "little")
    if tail[4:] != MAGIC.rstrip(b"\0") or length > size:
        raise truncated(path, f"byte {size}, before the list of what is in it")
    stream.seek(size - TAIL - length)
    footer, found = stream.read(length), []
    try:
        at = _field(footer, _int(footer, 0, "I"), 3)
        at += _int(footer, at, "I") if at else 0
        for k in range(_int(footer, at, "I") if at else 0):
            stream.seek(_int(footer, at + 4 + BLOCK * k, "q"))
            head = stream.read(_int(footer, at + 4 + BLOCK * k + 8, "I"))
            batch, _ = _message(head[8 if head[:4] == CONTINUES else 4 :])
            found.append(BatchHead(0, None) if batch is None else batch)
    except (struct.error, IndexError) as error:
        raise unreadable(path, "an Arrow file", error) from error
    return found


def _one_by_one(path: Path, stream: IO[bytes]) -> list[BatchHead]:
    """Batches of a stream, which ends with a mark or with the file."""
    found: list[BatchHead] = []
    at, size = 0, path.stat().st_size
    while True:
        stream.seek(at)
        head = stream.read(8)
        if at == size and found:
            return found
        where = f"byte {size}, after row {sum(batch.rows for batch in found)}"
        if len(head) < 8:
            raise truncated(path, where)
        if head[:4] != CONTINUES:
            raise unreadable(path, "an Arrow file", f"byte {at} where a message should begin")
        length = int.from_bytes(head[4:], "little")
        if length == 0:
            return found
        meta = stream.read(length) if length < LONGEST else b""
        if len(meta) < length:
            raise truncated(path, where)
        try:
            batch, body = _message(meta)
        except (struct.error, IndexError) as error:
            raise unreadable(path, f"an Arrow file (byte {at})", error) from error
        at += 8 + length + body
        if at > size:
            raise truncated(path, where)
        if batch is not None:
            found.append(batch)


def _message(meta: bytes) -> tuple[BatchHead | None, int]:
    """The head of a message if it is a record batch, and the length of its body."""
    root = _int(meta, 0, "I")
    kind_at, head_at, body_at = (_field(meta, root, number) for number in (1, 2, 3))
    body = _int(meta, body_at, "q") if body_at else 0
    if not kind_at or meta[kind_at] != RECORD_BATCH:
        return None, body
    batch = head_at + _int(meta, head_at, "I")
    rows_at, packing_at = _field(meta, batch, 0), _field(meta, batch, 3)
    codec = None
    if packing_at:
        packing = packing_at + _int(meta, packing_at, "I")
        codec_at = _field(meta, packing, 0)
        codec = CODECS[meta[codec_at] if codec_at else 0]
    return BatchHead(_int(meta, rows_at, "q") if rows_at else 0, codec), body


def _field(meta: bytes, table: int, number: int) -> int:
    """Where a field of a table lies; 0 where it is left out."""
    listing = table - _int(meta, table, "i")
    place = 4 + 2 * number
    if place >= _int(meta, listing, "H"):
        return 0
    offset = _int(meta, listing + place, "H")
    return table + offset if offset else 0


def _int(meta: bytes, at: int, code: str) -> int:
    return int(struct.unpack_from(f"<{code}", meta, at)[0])
