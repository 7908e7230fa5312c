"""Cells of a sweep that share a composition are as Hydra's own loader composes them."""

from __future__ import annotations

import pytest
from hydra import initialize_config_dir
from hydra.core.global_hydra import GlobalHydra
from hydra.types import RunMode
from omegaconf import OmegaConf

from memeval.cli import launcher
from memeval.cli.composed import SweepComposer, remember_files
from memeval.config.integers import register
from memeval.config.paths import conf_dir

JOBS = (
    ["system=bm25", "top_k='3'", "seed=1"],
    ["system=bm25", "top_k='7'", "seed=2", "dataset.limit_cases=2"],
    ["system=rag", "top_k='7'", "granularity=session"],
    ["system=bm25", "top_k=narrow", "dataset.categories=[1,2]"],
    ["system=bm25", "top_k='7'", "compression_turn='4'", "min_coverage=0.5"],
    ["system=bm25", "top_k='9'", "compression_turn='8'"],
    ["+tags.paper=x", "system=bm25", "top_k='9'"],
    ["seed=5"],
)


@pytest.mark.parametrize("order", [1, -1])
def test_each_cell_is_as_it_is_composed_alone(order: int) -> None:
    register()
    launcher.register()
    with initialize_config_dir(str(conf_dir()), version_base="1.3"):
        hydra = GlobalHydra.instance().hydra
        assert hydra is not None
        loader = hydra.config_loader
        master = loader.load_configuration("config", ["num_runs=2"], RunMode.RUN)
        remember_files(loader)
        composer = SweepComposer(loader, master)
        for words in JOBS[::order]:
            own, alone = composer.compose(words), loader.load_sweep_config(master, words)
            for config in (own, alone):
                # Only the names of folders are made of it.
                config.hydra.job.override_dirname = ""

            assert OmegaConf.to_container(own) == OmegaConf.to_container(alone), words
