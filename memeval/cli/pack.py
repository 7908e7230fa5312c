"""`python -m memeval pack [RUN|FILTER ...] -o FILE`: writes finished runs to one file to share."""

from collections.abc import Sequence

from memeval.api.selecting import Selection, select_runs
from memeval.cli.parser import LAST, Parser, check_folder_of
from memeval.comparison.finding import labels_of, shown_label
from memeval.errors import UserError
from memeval.packages.form import SUFFIX, is_package_id
from memeval.packages.register import entry_of_package
from memeval.packages.write import Packed
from memeval.packages.write import pack as pack_runs
from memeval.results.run import Run
from memeval.results.summary import PACKAGE_TAG
from memeval.text.shown import counted, in_shell, one_line

USAGE = f"""
writes finished runs as one file that anyone can check

words* RUN              runs or filters, as `list` takes them (default: all runs of this home)
{LAST}
-o --output! FILE:path  *{SUFFIX} file to write; an existing one is replaced
--who TEXT              who publishes the package
--licence TEXT          the licence of the rows, such as CC0 1.0
--supersedes ID         id of the package that this one replaces
--register FILE:path    the file that `register` wrote before the runs
--sign KEYFILE:file     sign it with an SSH key (needs ssh-keygen)
"""
PARSER = Parser.of("pack", USAGE, who="", licence="", supersedes="")


def pack(arguments: Sequence[str]) -> int:
    """Writes the package, and prints its content and the replaced parts."""
    options = PARSER.parse_intermixed_args(list(arguments))
    if options.output.suffix != SUFFIX:
        raise UserError(f"pack: {one_line(options.output)} does not end in {SUFFIX}")
    check_folder_of("--output", options.output)
    if options.supersedes and not is_package_id(options.supersedes):
        raise UserError("pack: --supersedes takes a package id as printed by pack: 16 hex digits")

    selection = select_runs(options.words, options.last)
    runs = _packable(selection)

    register = None
    if options.register is not None:
        register = entry_of_package(options.register, runs, selection.known)

    packed = pack_runs(
        runs,
        options.output,
        who=options.who,
        licence=options.licence,
        supersedes=options.supersedes,
        register=register,
        key_file=options.sign,
    )
    _print_content(packed)
    print(f"check it: python -m memeval verify {in_shell(packed.path)}")
    return 0


def _print_content(packed: Packed) -> None:
    size = packed.path.stat().st_size
    print(f"package:  {packed.path} ({size:,} bytes, id {packed.id})")
    for run, label in zip(packed.runs, labels_of(packed.runs), strict=True):
        print(f"  {run.key}  {shown_label(label, run.summary)}")

    replaced = [f"{count} × {kind}" for kind, count in packed.manifest.replaced.items()]
    print(f"replaced: {', '.join(replaced) or 'nothing: no secret, path or private host found'}")
    # A data set with canaries, or in another file, has the same name and licence.
    withheld = [(data.name, data.licence) for data in packed.manifest.data if not data.texts]
    for name, licence in dict.fromkeys(withheld):
        print(
            f"texts:    those of {one_line(name)} are left out, because its licence may "
            f"not allow passing them on ({licence}); answers and replies are included"
        )


def _packable(selection: Selection) -> list[Run]:
    """The chosen runs except those from packages; one that was named stays: `pack` refuses it.

    Raises `UserError` if none is left.
    """
    chosen, named = selection.chosen, selection.named
    runs = [run for run in chosen if run.key in named or PACKAGE_TAG not in run.summary.tags]
    if not runs:
        raise UserError(
            "pack: all matching runs came from packages", "pass those packages on unchanged"
        )

    left_out = len(chosen) - len(runs)
    if left_out:
        print(f"left out: {counted(left_out, 'run')} that came from packages")

    return runs
