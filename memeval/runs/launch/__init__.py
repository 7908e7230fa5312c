"""Hydra's launchers, and the application that Hydra runs."""
