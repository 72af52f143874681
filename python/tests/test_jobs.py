"""What `lapscope jobs` writes for Prometheus, read by the parsers of its own client."""

from __future__ import annotations

import json
import os
from pathlib import Path

import lapscope
import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families
from prometheus_client.parser import text_string_to_metric_families as families_of_older_text


def test_metrics_are_those_of_the_document(tmp_path: Path) -> None:
    made = tmp_path / "jobs.prom"
    records, database = os.environ["LAPSCOPE_TEST_JOBS"], tmp_path / "jobs.db"
    asked = ("--database", database, "--openmetrics", made, "--format", "json")
    printed = lapscope.Command().run("jobs", records, *asked)
    everything = json.loads(printed)["all"]
    text = made.read_text("utf-8")
    families = {family.name: family for family in text_string_to_metric_families(text)}
    for name, unit, key in [
        ("lapscope_jobs", "", "jobs"),
        ("lapscope_jobs_run_seconds", "seconds", "run_seconds"),
        ("lapscope_jobs_exposed_seconds", "seconds", "exposed_seconds"),
    ]:
        family = families.pop(name)
        assert (family.type, family.unit) == ("gauge", unit)
        assert sum(sample.value for sample in family.samples) == pytest.approx(everything[key])
    assert not families
    # node_exporter reads the text from before OpenMetrics
    assert [family.type for family in families_of_older_text(text)] == ["gauge"] * 3
