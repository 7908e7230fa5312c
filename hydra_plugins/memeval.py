"""The launchers of memeval, in the one namespace in which Hydra looks for plug-ins."""

from memeval.runs.launch import launcher


class SweepLauncher(launcher.SweepLauncher):
    """`hydra/launcher=memeval`, the default."""


class RayLauncher(launcher.RayLauncher):
    """`hydra/launcher=ray`."""
