"""Reports, pages and MLflow, written while later runs are still under way."""
