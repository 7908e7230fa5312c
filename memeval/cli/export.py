"""`python -m memeval export RUN --to TOOL`: a finished run in the files of another tool."""

from collections.abc import Sequence

from memeval.api.exporting import HF, INSPECT, TOOLS, WANDB
from memeval.api.exporting import export as export_run
from memeval.cli.parser import RUN, Parser, one_of
from memeval.packages.export.wandb_files import offline_runs

USAGE = f"""
exports a finished run to another tool

{RUN}
--to! {one_of(TOOLS)}  inspect: a log for `inspect view`; hf: a folder for
    `datasets.load_dataset`, with a card; wandb: an offline run for `wandb sync` (needs the extra
    `wandb`)
-o --output FOLDER:path  a new or empty folder (default: below outputs/exports)
--with-texts  also writes questions, answers and passages if the licence of the data is
    not known to allow passing them on, as for your own data
"""
PARSER = Parser.of("export", USAGE)


def export(arguments: Sequence[str]) -> int:
    """Writes the files, and prints how to open them in the tool."""
    options = PARSER.parse_args(list(arguments))
    exported = export_run(
        options.run, options.to, output=options.output, with_texts=options.with_texts
    )
    print(f"folder: {exported.folder}")
    ways = {
        INSPECT: f"inspect view --log-dir {exported.folder}",
        HF: f'datasets.load_dataset("{exported.folder}")',
        WANDB: f"wandb sync {' '.join(map(str, offline_runs(exported.folder)))}",
    }
    print(f"open:   {ways[exported.tool]}")
    if not exported.has_texts:
        print(
            "texts:  left out, because the licence of the data may not allow passing them on "
            f"({exported.terms.licence}); --with-texts writes them"
        )

    return 0
