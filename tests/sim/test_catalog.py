"""The catalog: each scenario loads and reads back, each value names its source, the AWS pair differs as told."""

import re

import pytest

from sim import catalog
from sim.scenario import ScenarioError, dump_yaml, load_scenario, to_mapping
from sim.schema import yaml_text

PROSE = ("name", "description", "sources")  # what needs no source
TAGS = re.compile(r"\[(P|C|I|F)\] \S")


def leaves(data, path=()):
    """Every value of a nested mapping with its path; list items by name where they have one."""
    if isinstance(data, dict):
        for key, value in data.items():
            if key != "name":
                yield from leaves(value, (*path, key))
    elif isinstance(data, list):
        for i, item in enumerate(data):
            name = item.get("name") if isinstance(item, dict) else None
            yield from leaves(item, (*path, str(i if name is None else name)))
    else:
        yield ".".join(path), data


def raw(name):
    return yaml_text.read(catalog.show(name), name)


def source_of(path, sources):
    found = [key for key in sources if path == key or path.startswith(key + ".")]
    return max(found, key=len, default=None)


def test_the_catalog_holds_the_published_cases():
    wanted = {
        "airesim-default",
        "aws-eks-nvrx-in-job",
        "aws-eks-nvrx-in-process",
        "aws-eks-save-async",
        "aws-eks-save-sync",
        "bloom-176b",
        "llama3-405b",
        "meta-rsc-1",
        "meta-rsc-2",
    }
    assert wanted <= set(catalog.names())
    hardware = {"p5.48xlarge", "p5en.48xlarge", "p4d.24xlarge", "dgx-h100", "gb200-nvl72"}
    assert hardware <= set(catalog.hardware_names())


@pytest.mark.parametrize("name", catalog.names())
def test_a_scenario_loads_under_its_name_and_reads_back(name):
    s = load_scenario(name)
    assert s.name == name
    assert s.description
    assert load_scenario(dump_yaml(s)) == s
    assert catalog.show(name).startswith("# yaml-language-server: $schema=goodput-scenario.schema.json\n")


@pytest.mark.parametrize("name", catalog.names())
def test_every_value_names_its_source_and_every_source_is_of_a_value(name):
    data = raw(name)
    sources = data["sources"]
    used = {}
    for path, _ in leaves({key: value for key, value in data.items() if key not in PROSE}):
        key = source_of(path, sources)
        assert key is not None, f"{path} has no source"
        used[key] = True
    assert set(used) == set(sources)
    for path, text in sources.items():
        assert TAGS.match(text), f"{path}: {text}"
        if text.startswith(("[I]", "[F]")):  # what is not published says why it is what it is
            assert len(text) > 25, f"{path}: {text}"


@pytest.mark.parametrize("name", catalog.names())
def test_a_scenario_says_nothing_that_the_loaded_one_does_not(name):
    """Every stated value is in force: none is dropped, shadowed or replaced on the way in."""
    loaded = dict(leaves(to_mapping(load_scenario(name))))
    stated = {path for path, _ in leaves({k: v for k, v in raw(name).items() if k not in PROSE})}
    defaults = {path for path in stated if path not in loaded}
    for path in defaults:  # left out when written because it is the default
        assert load_scenario(name, [f"{path}=null"]) == load_scenario(name), path


def test_the_aws_pair_differs_only_in_layer_launcher_and_the_symptom_at_574():
    a, b = (dict(leaves(raw(f"aws-eks-nvrx-in-{x}"))) for x in ("process", "job"))
    data = {
        path for path in a.keys() | b.keys() if path.split(".")[0] not in PROSE and a.get(path) != b.get(path)
    }
    layers = {path for path in data if path.startswith(("recovery.in_process.", "recovery.in_job."))}
    assert data - layers == {"recovery.launcher", "recovery.layers.0", "failures.schedule.f3.symptom"}


def test_the_aws_schedule_reworks_724_steps():
    s = load_scenario("aws-eks-nvrx-in-process")
    n = s.interval_steps()
    assert [f.step % n for f in s.failures.schedule] == [62, 239, 74, 320, 29]
    assert [f.rank for f in s.failures.schedule] == [4, 12, 12, 2, 1]


def test_llama_counts_419_unexpected_interruptions():
    s = load_scenario("llama3-405b")
    assert s.fault_rate_per_s() * 54 * 86400 == pytest.approx(419, rel=1e-12)
    assert 1 / s.fault_rate_per_s() / 3600 == pytest.approx(3.093, abs=5e-4)
    per_node_day = s.fault_rate_per_s() / s.cluster.nodes * 86400
    assert per_node_day * 1000 == pytest.approx(3.789, abs=5e-4)


@pytest.mark.parametrize(("name", "mttf_h"), [("meta-rsc-1", 1.803), ("meta-rsc-2", 5.008)])
def test_meta_clusters_fail_as_published(name, mttf_h):
    s = load_scenario(name)
    assert s.ranks() == 16_384
    assert 1 / s.fault_rate_per_s() / 3600 == pytest.approx(mttf_h, abs=1e-3)


def test_bloom_interval_in_steps_and_seconds():
    s = load_scenario("bloom-176b")
    assert (s.ranks(), s.interval_steps(), s.nominal_step_s()) == (384, 100, 105.0)


def test_airesim_pool_adds_up():
    s = load_scenario("airesim-default")
    assert s.cluster.nodes + s.cluster.spares.hot + s.cluster.spares.cold == 4160 + 200
    first, second = s.cluster.repair.stages
    silent = (1 - first.escalate) * (1 - first.success) + first.escalate * (1 - second.success)
    assert silent == pytest.approx(0.24)  # the report's overall repair failure rate before its change


@pytest.mark.parametrize("name", catalog.hardware_names())
def test_hardware_has_a_source_for_every_value(name):
    data = raw(name)
    values = set(data) - {"name", "description", "sources"}
    assert values <= set(data["sources"])
    assert all(TAGS.match(text) for text in data["sources"].values())
    found = catalog.hardware(name)
    assert found.name == name
    assert found.gpus_per_node >= 1 and found.gpu_memory_bytes > 1e10
    assert (
        load_scenario(
            {
                "cluster": {"node_type": name, "nodes": 2},
                "workload": {"step_time": 1, "steps": 10},
                "checkpoint": {"mode": "none"},
            }
        ).cluster.gpus_per_node
        == found.gpus_per_node
    )


def test_a_rack_of_gb200_is_known():
    assert catalog.hardware("gb200-nvl72").nodes_per_rack == 18


@pytest.mark.parametrize("look", [catalog.show, catalog.hardware])
@pytest.mark.parametrize("name", ["nothing", "", "../__init__", "a\0b"])
def test_unknown_names_are_told_with_the_known_ones(look, name):
    with pytest.raises(ScenarioError, match="gb200-nvl72"):
        look(name)
