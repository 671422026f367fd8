"""The work W1 to W5 in Headrace: `python -m benchmarks.side_by_side.applications.with_headrace <JSON object>`."""

from __future__ import annotations

import json
import sys

from benchmarks.workloads import WORKLOADS
from headrace import Streams, StreamsConfig


def main() -> None:
    given = json.loads(sys.argv[1])
    topology = WORKLOADS[given["work"]].build(given["source"], given["sink"])
    config = StreamsConfig(
        application_id=given["application"],
        bootstrap_servers=given["address"],
        state_dir=given["folder"],
        master="local[2]",
        processing_guarantee=given["guarantee"],
        statestore_cache_max_bytes=given["cache"],
        num_partitions=given["partitions"],
        max_records_per_batch=1_000_000,
    )
    Streams(topology, config).run(progress=False)


if __name__ == "__main__":
    main()
