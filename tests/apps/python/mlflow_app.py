"""MLflow with its tracking store and model registry in the database: its migrations, runs with metrics, parameters and
tags, searches, models with versions and aliases, deletion."""
import logging
import sys
import tempfile

logging.disable(logging.INFO)

from mlflow import MlflowClient
from mlflow.entities import Metric, Param, RunTag
from mlflow.exceptions import MlflowException

url = sys.argv[1]
artifacts = tempfile.mkdtemp()
client = MlflowClient(tracking_uri=url, registry_uri=url)
experiment = client.create_experiment("prices", artifact_location=artifacts, tags={"team": "red"})
try:
    client.create_experiment("prices")
except MlflowException as e:
    print("twice:", e.error_code)
runs = []
for n in range(6):
    run = client.create_run(experiment, start_time=1_700_000_000_000 + n, run_name=f"run-{n}", tags={"even": str(n % 2 == 0)})
    runs.append(run.info.run_id)
    client.log_batch(
        run.info.run_id,
        metrics=[Metric("loss", 1.0 / (n + 1) + step, 1_700_000_000_000 + step, step) for step in range(20)],
        params=[Param("depth", str(n)), Param("kind", "tree" if n < 3 else "forest")],
        tags=[RunTag("note", "x" * n)],
    )
    client.set_terminated(run.info.run_id, status="FINISHED" if n else "FAILED", end_time=1_700_000_001_000 + n)
run = client.get_run(runs[2])
print("run", run.info.run_name, run.info.status, run.data.params, round(run.data.metrics["loss"], 4), run.data.tags["note"])
print("history", [round(m.value, 3) for m in client.get_metric_history(runs[1], "loss")][:4])
try:
    client.log_param(runs[0], "depth", "99")
except MlflowException as e:
    print("changed:", e.error_code)
client.log_metric(runs[0], "nan", float("nan"), timestamp=1_700_000_000_000)
client.log_metric(runs[0], "inf", float("inf"), timestamp=1_700_000_000_000)
print("special", {k: v for k, v in sorted(client.get_run(runs[0]).data.metrics.items()) if k != "loss"})


def names(found):
    return [r.info.run_name for r in found]


print("best", names(client.search_runs([experiment], "", order_by=["metrics.loss ASC"], max_results=3)))
print("forests", names(client.search_runs([experiment], "params.kind = 'forest' AND metrics.loss < 19.3", order_by=["params.depth DESC"])))
print("tagged", names(client.search_runs([experiment], "tags.even = 'True'", order_by=["attributes.start_time ASC"])))
print("like", names(client.search_runs([experiment], "attributes.run_name ILIKE 'RUN-%' AND attributes.status = 'FAILED'")))
page = client.search_runs([experiment], "", order_by=["attributes.start_time ASC"], max_results=4)
rest = client.search_runs([experiment], "", order_by=["attributes.start_time ASC"], max_results=4, page_token=page.token)
print("pages", names(page), names(rest))

client.delete_run(runs[5])
print("deleted", len(client.search_runs([experiment], "")))
client.restore_run(runs[5])
print("restored", len(client.search_runs([experiment], "")))

client.create_registered_model("model", tags={"a": "1"}, description="first")
try:
    client.create_registered_model("model")
except MlflowException as e:
    print("twice:", e.error_code)
for n in range(3):
    version = client.create_model_version("model", f"{artifacts}/{n}", runs[n], tags={"n": str(n)})
    print("version", version.version, version.run_id == runs[n])
client.set_registered_model_alias("model", "champion", "2")
client.set_registered_model_alias("model", "champion", "3")
print("alias", client.get_model_version_by_alias("model", "champion").version)
client.set_model_version_tag("model", "1", "checked", "yes")
found = client.search_model_versions("name = 'model'", order_by=["version_number DESC"])
print("versions", [v.version for v in found])
client.rename_registered_model("model", "renamed")
print("renamed", [m.name for m in client.search_registered_models("name LIKE 'ren%'")])
client.delete_model_version("renamed", "1")
print("left", sorted(v.version for v in client.search_model_versions("name = 'renamed'")))
client.delete_registered_model("renamed")
print("models", len(client.search_registered_models()))
client.rename_experiment(experiment, "costs")
client.delete_experiment(experiment)
print("experiments", sorted(e.name for e in client.search_experiments()))
