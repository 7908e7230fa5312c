"""`python -m memeval board FOLDER -o SITE`: packages side by side, as a static site."""

from collections.abc import Sequence

from memeval.cli.parser import Parser
from memeval.packages.form import SUFFIX
from memeval.text.shown import all_counted, counted, one_line, printable

USAGE = f"""
shows the packages of a folder side by side, as a folder of static pages

packages FOLDER:path    folder of *{SUFFIX} files
-o --output! SITE:path  a new folder, or an earlier board
--allowed-signers FILE:file  signers that this board trusts, in ssh-keygen's format
--again                 also check packages that were checked before
"""
PARSER = Parser.of("board", USAGE)
USAGE_OF_CHECK = f"""
checks whether packages are intact and may be added to their folder

packages+ PACKAGE:path  *{SUFFIX} files of the folder
--most-mb MB:count        largest size (default: 50)
"""
CHECK_PARSER = Parser.of("board check", USAGE_OF_CHECK, most_mb=50)


def board(arguments: Sequence[str]) -> int:
    """Writes the site, and prints which packages it does not show."""
    if arguments and arguments[0] == "check":
        return check(arguments[1:])

    options = PARSER.parse_args(list(arguments))
    from memeval.packages.board.collect import collect
    from memeval.packages.board.write import write_board

    data = collect(options.packages, options.allowed_signers, again=options.again)
    write_board(data, options.output)
    runs = sum(len(table.rows) for table in data.tables)
    counts = {"packages": len(data.packages), "runs": runs, "protocols": len(data.tables)}
    print(f"board:    {all_counted(counts)}")
    if data.known:
        print(
            f"checked:  {data.known} of them earlier, with the same code and data; to check again: "
            "--again"
        )

    for package in data.left_out:
        print(printable(f"not shown: {package.file}: {package.reason}"))

    print(f"open:     {one_line(options.output / 'index.html')}")
    return 0


def check(arguments: Sequence[str]) -> int:
    """Prints whether packages may be added to their folder; exit status 1 if one may not."""
    options = CHECK_PARSER.parse_args(list(arguments))
    from memeval.packages.board.check import check_package

    status = 0
    for path in options.packages:
        problems = check_package(path, most_bytes=options.most_mb * 10**6)
        outcome = counted(len(problems), "problem") if problems else "may be added"
        status |= bool(problems)
        print(printable(f"{one_line(path.name)}: {outcome}"))
        for line in problems:
            print(f"  {printable(line)}")

    return status
