"""Kubernetes: two ConfigMaps, one of environment variables, one of files."""

from __future__ import annotations

import re

from sim.export import ft_launcher, text
from sim.export.settings import Settings
from sim.export.sheet import Framework, Sheet

KUBERNETES = Framework(
    "Kubernetes",
    "core/v1",
    "kubernetes/kubernetes, api/openapi-spec (io.k8s.api.core.v1.ConfigMap); docs: concepts/configuration/configmap",
)
PREFIX = "goodput-planner"
NAME_LENGTH = 50  # of a label's 63, the ending of the map's name left over


def render(settings: Settings, as_json: str) -> tuple[str, Sheet]:
    """Return the two documents; `as_json` is the content of settings.json."""
    name = _name(settings.scenario.name)
    use = (
        f"kubectl apply -f FILE; in the pod envFrom: [{{configMapRef: {{name: {name}-checkpoint-env}}}}], "
        "$(GOODPUT_CHECKPOINT_STEPS) in its args, and the other map as a volume. The variables have no effect until "
        "the args hand them to the trainer, and a running pod keeps those it was started with"
    )
    sheet = Sheet(KUBERNETES, settings, use)
    files = {"settings.json": as_json}
    if "in_job" in settings.scenario.recovery.layers:
        files["ft_launcher.yaml"] = ft_launcher.render(settings)
    heading = [
        f"Checkpoint settings of {settings.scenario.name} for {sheet.framework}",
        text.origin(settings),
        text.command(settings),
        settings.interval_text(),
        f"Use: {use}",
        text.timeouts(settings),
        *text.said(text.relevant(settings)),
    ]
    lines = [line for part in heading for line in text.comment(part)]
    lines += _map(settings, f"{name}-checkpoint-env", environment(settings))
    lines += ["---", *_map(settings, f"{name}-checkpoint-files", files)]
    return "\n".join(lines) + "\n", sheet


def environment(settings: Settings) -> dict[str, str]:
    """Return the variables: names that every Kubernetes version takes, values as text."""
    checkpoint, found = settings.scenario.checkpoint, {}
    for i, level in enumerate(settings.levels):
        tier = f"_{_variable(level.name)}" if checkpoint.mode == "tiered" else ""
        if f"GOODPUT_CHECKPOINT{tier}_STEPS" in found:  # names may differ in more than what a variable's can hold
            tier += f"_{i}"
        found[f"GOODPUT_CHECKPOINT{tier}_STEPS"] = str(level.steps)
        found[f"GOODPUT_CHECKPOINT{tier}_SECONDS"] = f"{level.interval_s:.10g}"
    found["GOODPUT_CHECKPOINT_MODE"] = checkpoint.mode
    found["GOODPUT_CHECKPOINT_KEEP"] = str(checkpoint.keep)
    layers = settings.scenario.recovery.layers
    for timeout in settings.timeouts.all():
        if timeout.seconds is not None and ("in_job" in layers or ".in_job." not in timeout.path):
            name = timeout.path.rpartition(".")[2].removesuffix("_timeout")
            section = "section_" if ".section_timeouts." in timeout.path else ""
            found[f"GOODPUT_{_variable(f'{section}{name}')}_TIMEOUT_SECONDS"] = f"{timeout.seconds:.10g}"
    if "in_job" in layers:
        found["GOODPUT_MAX_RESTARTS"] = str(settings.timeouts.max_restarts)
    return found


def _map(settings: Settings, name: str, data: dict[str, str]) -> list[str]:
    record = settings.record
    notes = {
        "version": record["version"],
        "scenario": settings.scenario.name,
        "scenario-hash": record["scenario_hash"],
        "seed": str(record["seed"]),
        "command": record["command"] or "goodput export",
        "interval": settings.interval_text(),
    }
    lines = ["apiVersion: v1", "kind: ConfigMap", "metadata:", f"  name: {name}"]
    lines += ["  labels:", f"    app.kubernetes.io/managed-by: {PREFIX}", "  annotations:"]
    lines += [f"    {PREFIX}/{key}: {text.scalar(value)}" for key, value in notes.items()]
    lines.append("data:")
    for key, value in data.items():
        if "\n" in value:
            lines.append(f"  {key}: |")
            lines += [f"    {line}" if line else "" for line in value.splitlines()]
        else:
            lines.append(f"  {key}: {text.scalar(value)}")
    return lines


def _name(scenario: str) -> str:
    """Return a scenario's name as a DNS label."""
    return re.sub(r"[^a-z0-9]+", "-", scenario.lower())[:NAME_LENGTH].strip("-") or "scenario"


def _variable(name: str) -> str:
    return re.sub(r"[^A-Z0-9]+", "_", name.upper())
