"""Registry entry of OpsEval."""

from __future__ import annotations

from memeval.datasets.contract import DatasetInfo, FileInfo

_ADDRESS = "https://raw.githubusercontent.com/NetManAIOps/OpsEval-Datasets/main/data"
_FILES = (
    (
        "test/Wired Network.json",
        "ecaa1a4475593f69f6d8684cc8dd87826f30fd5a2e50f3e699bd35e5987f1030",
        1_295_123,
    ),
    (
        "test/5G Communication.json",
        "a8e21a338915dda1ff4d6c43de3c420188e4e2e70a1beb55ec298e26ad65798c",
        129_095,
    ),
    (
        "test/Oracle Database.json",
        "b6f9c627f8d8c981dfe79a2415729150eb108aac85fa4b37b59160e927762f37",
        207_753,
    ),
    (
        "test/Log Analysis.json",
        "f79f3ded97644c89c3c5cb8d63e1b4c48d9188b260c6e5312d4c69af06065de9",
        190_721,
    ),
    (
        "dev/Wired Network.json",
        "cf22f261edf9ba7835b57218580445af33f9f311de9f76cd50804ac77e612da6",
        7_071,
    ),
    (
        "dev/5G Communication.json",
        "4d4a753d8b47585bfcbd0356369c33e8b96060cdf0cb6b43ad4e5cbf346eb9d1",
        1_687,
    ),
    (
        "dev/Oracle Database.json",
        "a5f266556255439a17ad44cb9e943d0c3fcb9aa554c90d2be2f8da6de11677df",
        3_292,
    ),
    (
        "dev/Log Analysis.json",
        "bce9b19492253b0154df9f5fa73c75d922cd03c14024fe3f88ceabb52a870003",
        2_543,
    ),
)

OPSEVAL = DatasetInfo(
    name="opseval",
    title="OpsEval: questions about networks, databases and logs, in English and Chinese",
    file="opseval",
    url=None,
    sha256=None,
    size_bytes=sum(size for _, _, size in _FILES),
    licence="Apache 2.0",
    citation=(
        "Liu et al., OpsEval: A Comprehensive IT Operations Benchmark Suite for Large Language "
        "Models, 2024, arXiv 2310.07637"
    ),
    counts={"questions": 2_596},
    files=tuple(
        FileInfo(
            name=name, url=f"{_ADDRESS}/{name.replace(' ', '%20')}", sha256=digest, size_bytes=size
        )
        for name, digest, size in _FILES
    ),
)

INFOS = (OPSEVAL,)
