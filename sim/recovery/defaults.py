"""What NVIDIA's Resiliency Extension does when a setting is not given, by version.

Source: NVIDIA/nvidia-resiliency-ext, tags v0.4.1, v0.6.0, v0.7.0: fault_tolerance/config.py and launcher.py;
docs/source/inprocess/usage_guide.rst, section "Restart latency".
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple


class InJobDefaults(NamedTuple):
    """ft_launcher's settings of one NVRx version, in seconds; inf = off."""

    monitor_interval_s: float
    heartbeat_timeout_s: float
    initial_heartbeat_timeout_s: float
    stop_timeout_s: float
    memory_reclaim_s: float
    memory_reclaim_timeout_s: float
    rendezvous_s: float
    max_no_progress_cycles: int  # 0 = never gives up for lack of progress


IN_JOB: Final[dict[str, InJobDefaults]] = {
    # rendezvous: one poll of 1 s [docs]; 0.7.0 adds a last call of 1 s.
    # memory reclaim: 0.6+ polls every 2 s for up to 50 s; one poll is taken as the usual case (inferred).
    "0.4.1": InJobDefaults(0.1, 2700.0, 3600.0, 30.0, 0.0, 0.0, 1.0, 0),
    "0.6.0": InJobDefaults(0.3, math.inf, math.inf, 15.0, 2.0, 50.0, 1.0, 2),
    "0.7.0": InJobDefaults(0.3, math.inf, math.inf, 15.0, 2.0, 50.0, 2.0, 3),
}

HEARTBEAT_CHECK_S: Final = 5.0  # workload_check_interval, the same in all three versions
TORCHRUN_MONITOR_S: Final = 0.1  # torch.distributed.run --monitor-interval
