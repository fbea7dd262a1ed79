"""State as plain values, and these as an array of JSON bytes in a snapshot."""

from __future__ import annotations

import json
from functools import cache, partial
from typing import Annotated, Any, ClassVar, get_type_hints

import numpy as np
from numpy.typing import NDArray
from pydantic import PlainSerializer, PlainValidator, TypeAdapter

from include.model.errors import StoreError

_AS_LIST = PlainSerializer(np.ndarray.tolist)
# With a type of their own: a list without numbers would be read as one of fractions.
_INTEGERS, _FRACTIONS = partial(np.array, dtype=np.int64), partial(np.array, dtype=np.float64)
I64 = Annotated[NDArray[np.int64], PlainValidator(_INTEGERS), _AS_LIST]
F64 = Annotated[NDArray[np.float64], PlainValidator(_FRACTIONS), _AS_LIST]


class StoredState:
    """Has attributes that a snapshot keeps; their annotations say how they are read again."""

    __slots__ = ()
    STORED: ClassVar[tuple[str, ...]]

    def to_plain(self) -> dict[str, Any]:
        types = self._types()
        return {name: types[name].dump_python(getattr(self, name)) for name in self.STORED}

    def load_plain(self, plain: dict[str, Any]) -> None:
        for name, kind in self._types().items():
            setattr(self, name, kind.validate_python(plain[name]))

    @classmethod
    @cache
    def _types(cls) -> dict[str, TypeAdapter[Any]]:
        hints = get_type_hints(cls, include_extras=True)
        return {name: TypeAdapter(hints[name]) for name in cls.STORED}


def packed(plain: dict[str, Any], version: int) -> np.ndarray:
    """JSON bytes of ``plain`` with the format's version."""
    text = json.dumps({"version": version, **plain}, separators=(",", ":")).encode()
    return np.frombuffer(text, dtype=np.uint8)


def unpacked(array: np.ndarray, version: int) -> dict[str, Any]:
    """The inverse of ``packed``. Raises StoreError for another version."""
    plain: dict[str, Any] = json.loads(array.tobytes())
    if plain["version"] != version:
        raise StoreError(
            f"the snapshot has version {plain['version']}, this code reads {version}; remove the "
            "run's folder and run it again"
        )
    return plain
