"""Joins row groups that were encoded separately into one Parquet file, with the bytes of a single writer.

A Parquet file is PAR1, the pages, a footer, the footer's length, PAR1. Pages do not contain their position in the file;
the footer does, in Thrift's compact protocol. So pages are copied, and the offsets in the footer are changed.

    struct   fields (header, value) up to a 0 byte; header: (id - last id) << 4 | type, or type and the zigzag id
    integer  zigzag, seven bits per byte, low bits first
    binary   length and bytes
    list     size << 4 | type, or 15 << 4 | type and the size; then the elements
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any, BinaryIO

MAGIC = b"PAR1"

Fields = dict[int, tuple[int, Any]]
"""A struct: id -> (type, value); a list's value is (type of its elements, elements)."""

_TRUE, _FALSE, _BYTE, _INTEGERS, _DOUBLE, _BINARY, _LIST, _STRUCT = 1, 2, 3, (4, 5, 6), 7, 8, 9, 12

# Ids in parquet.thrift. Offsets of a column chunk: file_offset, offset_index_offset, column_index_offset; of its
# metadata: data_page_offset, index_page_offset, dictionary_page_offset, bloom_filter_offset.
_ROWS, _GROUPS = 3, 4
_COLUMNS, _GROUP_OFFSET, _ORDINAL = 1, 5, 7
_CHUNK_OFFSETS, _CHUNK_META, _META_OFFSETS = (2, 4, 6), 3, (9, 10, 11, 14)


class Splicer:
    """Writes the row groups of whole Parquet files, in the order given, as one file."""

    def __init__(self, file: BinaryIO) -> None:
        self._file, self._at = file, len(MAGIC)
        self._groups: list[Fields] = []
        self._rows = 0
        file.write(MAGIC)

    def append(self, encoded: memoryview) -> None:
        """Copy the pages of a file, and keep the row groups of its footer for our own."""
        footer, end = _footer(encoded)
        self._file.write(encoded[len(MAGIC) : end])
        for group in footer[_GROUPS][1][1]:
            self._groups.append(_moved(group, self._at - len(MAGIC), len(self._groups)))
        self._rows += footer[_ROWS][1]
        self._at += end - len(MAGIC)

    def close(self, empty: memoryview) -> None:
        """Write the footer: schema and metadata of ``empty``, a file without rows, and all row groups."""
        footer, _ = _footer(empty)
        footer[_ROWS] = (footer[_ROWS][0], self._rows)
        footer[_GROUPS] = (_LIST, (_STRUCT, self._groups))
        text = bytes(_packed(_STRUCT, footer))
        self._file.write(text + struct.pack("<I", len(text)) + MAGIC)


def _footer(encoded: memoryview) -> tuple[Fields, int]:
    """The footer of a file and the position at which it begins."""
    start = len(encoded) - 8 - struct.unpack("<I", encoded[-8:-4])[0]
    return _Reader(encoded[start:-8]).value(_STRUCT), start


def _moved(group: Fields, offset: int, ordinal: int) -> Fields:
    """A row group with its number in the new file and all its offsets moved."""
    _move(group, (_GROUP_OFFSET,), offset)
    if _ORDINAL in group:
        group[_ORDINAL] = (group[_ORDINAL][0], ordinal)
    for chunk in group[_COLUMNS][1][1]:
        _move(chunk, _CHUNK_OFFSETS, offset)
        _move(chunk[_CHUNK_META][1], _META_OFFSETS, offset)
    return group


def _move(fields: Fields, ids: Sequence[int], offset: int) -> None:
    """Add ``offset`` to those of the offsets that are present; 0 means none, because every page comes after PAR1."""
    for i in ids:
        if i in fields and fields[i][1]:
            fields[i] = (fields[i][0], fields[i][1] + offset)


class _Reader:
    """Reads Thrift's compact protocol."""

    def __init__(self, data: memoryview) -> None:
        self._data, self._at = data, 0

    def value(self, kind: int) -> Any:
        if kind in (_TRUE, _FALSE):  # of a field; its type is its value
            return kind == _TRUE
        if kind == _BYTE:
            return self._read_bytes(1)[0]
        if kind in _INTEGERS:
            return self._zigzag()
        if kind == _DOUBLE:
            return bytes(self._read_bytes(8))
        if kind == _BINARY:
            return bytes(self._read_bytes(self._varint()))
        if kind == _LIST:
            head = self._read_bytes(1)[0]
            size = head >> 4 if head >> 4 < 15 else self._varint()
            inner = _BYTE if head & 15 in (_TRUE, _FALSE) else head & 15  # truth in a list is a byte
            return head & 15, [self.value(inner) for _ in range(size)]
        if kind == _STRUCT:
            return self._struct()
        raise ValueError(f"type {kind} in the footer of a Parquet file")

    def _struct(self) -> Fields:
        fields: Fields = {}
        last = 0
        while head := self._read_bytes(1)[0]:
            last = last + (head >> 4) if head >> 4 else self._zigzag()
            fields[last] = (head & 15, self.value(head & 15))
        return fields

    def _read_bytes(self, count: int) -> memoryview:
        self._at += count
        return self._data[self._at - count : self._at]

    def _varint(self) -> int:
        value = shift = 0
        while (byte := self._read_bytes(1)[0]) & 128:
            value |= (byte & 127) << shift
            shift += 7
        return value | byte << shift

    def _zigzag(self) -> int:
        value = self._varint()
        return value >> 1 ^ -(value & 1)


def _packed(kind: int, value: Any) -> bytearray:
    """A value in Thrift's compact protocol."""
    if kind in (_TRUE, _FALSE):
        return bytearray()
    if kind == _BYTE:
        return bytearray((value,))
    if kind in _INTEGERS:
        return _zigzag(value)
    if kind == _DOUBLE:
        return bytearray(value)
    if kind == _BINARY:
        return bytearray(_varint(len(value)) + value)
    out = bytearray()
    if kind == _LIST:
        inner, elements = value
        out += bytes((len(elements) << 4 | inner,)) if len(elements) < 15 else bytes((15 << 4 | inner,))
        if len(elements) >= 15:
            out += _varint(len(elements))
        for element in elements:
            out += _packed(_BYTE if inner in (_TRUE, _FALSE) else inner, element)
        return out
    last = 0
    for i, (inner, field) in value.items():
        out += bytes((i - last << 4 | inner,)) if 0 < i - last < 16 else bytes((inner,)) + _zigzag(i)
        out += _packed(inner, field)
        last = i
    return out + b"\0"


def _varint(value: int) -> bytearray:
    """A whole number as a varint of Thrift's compact protocol: 7 bits per byte, the lowest first."""
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return out


def _zigzag(value: int) -> bytearray:
    return _varint(value << 1 if value >= 0 else -value * 2 - 1)
