"""Rules of saving: a loaded memory equals the saved one, and a damaged memory is refused."""

import json
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from memeval.errors import SystemFaultError
from memeval.testing.sample import sample_chunks, turn_ids_of
from memeval.testing.under_test import (
    NotApplicableError,
    Opened,
    SystemUnderTest,
    ViolationError,
    discard,
    expect,
    expect_alike,
    quoted,
)
from memeval.text.shown import one_line


async def save_and_load(sut: SystemUnderTest) -> None:
    with _folder() as folder:
        memory = await sut.fill_system(compress_after=(6,))
        await _save(memory, folder)
        model = sut.model()
        other = sut.start(model)
        await other.call("load", folder)
        calls = len(model.prompts)
        first, second = await sut.ask_all(memory), await sut.ask_all(other)

    expect_alike(first, second, "after loading,", "the answers of the saved memory")
    expect(calls == 0, f"loading called the model {calls} times", "no call")


async def dump_is_plain(sut: SystemUnderTest) -> None:
    memory = await sut.fill_system(compress_after=(6,))
    dumped = await sut.dump(memory)
    loaded = dumped
    with _folder() as folder:
        try:
            await _save(memory, folder)
        except NotApplicableError:
            pass
        else:
            other = sut.start(sut.model())
            await other.call("load", folder)
            loaded = await sut.dump(other)

    turns = turn_ids_of(sample_chunks())
    for item in dumped:
        # A tuple, or a number as a key, would come back as another type.
        is_plain = isinstance(item, Mapping) and json.loads(json.dumps(dict(item))) == item
        expect(is_plain, f"the item {one_line(item, 60)}", "objects of plain JSON")
        for name in ("kind", "text"):
            value = item.get(name)
            seen = f"an item whose {name} is {one_line(value, 60)}"
            expect(isinstance(value, str) and bool(value), seen, "a string")

        foreign = sorted(set(item.get("turn_ids", ())) - turns)
        expect(not foreign, f"an item with the turns {quoted(foreign)}", "turns of the case")

    expect(loaded == dumped, "a different dump after loading", "the same dump")


async def damage_is_refused(sut: SystemUnderTest) -> None:
    with _folder() as folder:
        await _save(await sut.fill_system(), folder)
        files = [path for path in folder.rglob("*") if path.is_file() and path.stat().st_size > 1]
        if not files:
            return

        for path in files:
            path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])

        other = sut.start(sut.model())
        try:
            await other.call("load", folder)
        except Exception:  # noqa: BLE001
            # Any error will do: the engine then rebuilds the memory.
            await discard(other)
            return

    raise ViolationError("a memory that was cut in half was loaded", "an error")


async def _save(memory: Opened, folder: Path) -> None:
    try:
        await memory.call("save", folder)
    except SystemFaultError as fault:
        if not isinstance(fault.__cause__, NotImplementedError):
            raise

        raise NotApplicableError("it can't be saved: its memory is rebuilt") from None


@contextmanager
def _folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="memeval-check-") as name:
        yield Path(name)
