"""The adapter of a stream that is told what is known besides the raw forecast."""

from __future__ import annotations

from typing import Any

from machine_adapters import Binary, Kind

__all__ = ["Contexts"]


class Contexts(Binary):
    """Calibrant(context=...): a raw forecast comes with what is known besides."""

    bad_raws = tuple((p, {}) for p in Kind.bad_raws)

    def number(self, raw: Any) -> float:
        return float(raw[0])

    def forecast(self, rec: Any, raw: Any, **named: Any) -> Any:
        return rec.forecast(raw[0], context=raw[1], **named)

    def asked(self, raw: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
        return raw[:1], {"context": raw[1]}

    def learn(self, rec: Any, raw: Any, outcome: Any) -> None:
        rec.learn_one(raw[0], outcome, context=raw[1])

    def replay(self, rec: Any, raws: list[Any], outcomes: list[Any], **late: Any) -> Any:
        told = {"context": self._columns([known for _, known in raws])}
        return super().replay(rec, [p for p, _ in raws], outcomes, **told, **late)

    def play(self, rec: Any, kind: list[Any], id: list[Any], x: list[Any], **more: Any) -> Any:
        pairs = [told if isinstance(told, tuple) else (told, {}) for told in x]
        columns = self._columns([known for _, known in pairs])
        return super().play(rec, kind, id, [p for p, _ in pairs], context=columns, **more)

    def _columns(self, known: list[dict[str, Any]]) -> dict[str, list[Any]]:
        return {name: [row.get(name) for row in known] for name in ("age", "plan")}
