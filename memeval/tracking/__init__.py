"""MLflow. No other package of memeval imports it.

Importing this package sets MLflow's environment, which must happen before MLflow is imported.
Variables set by the user are kept. This package imports nothing heavy: `store.prepare_store` and
`log` load MLflow.
"""

import os

ENVIRONMENT = {
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_DISABLE_AGENT_HINT": "true",
    "MLFLOW_LOGGING_LEVEL": "CRITICAL",
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",
    "MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR": "false",
    "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "2",
    "MLFLOW_HTTP_REQUEST_BACKOFF_FACTOR": "1",
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "15",
    "MLFLOW_ALLOW_HTTP_REDIRECTS": "false",
}
"""No telemetry and no chatter. MLflow gives up on an unreachable server within seconds, not
minutes. It follows no redirects: with status 307 the whole body would go to another host.
"""

for name, value in ENVIRONMENT.items():
    os.environ.setdefault(name, value)
