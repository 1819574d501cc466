"""bulk_embed.py with Ray Data: python ray_embed.py MODEL FILE FOLDER [WORKERS]."""

from __future__ import annotations

import os
import sys
from typing import Any

import bulk_embed
import ray
import ray.cloudpickle


class Embed:
    """A worker: an actor that keeps the model open."""

    def __init__(self, *paths: str) -> None:
        self.paths = paths

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        """Write a part. Texts go from the file to the model, not through Ray's memory."""
        part = bulk_embed.Part(*(int(batch[name][0]) for name in bulk_embed.Part._fields))
        return {"n": [bulk_embed.write_part(*self.paths, part)]}


if __name__ == "__main__":
    paths = sys.argv[1:4]
    workers = int(sys.argv[4]) if len(sys.argv) > 4 else os.cpu_count() or 1
    ray.cloudpickle.register_pickle_by_value(bulk_embed)  # workers need not have the file
    ray.init(num_cpus=workers + 1, include_dashboard=False, log_to_driver=False)
    parts = bulk_embed.missing_parts(*paths)
    if parts:
        rows = ray.data.from_items([part._asdict() for part in parts], override_num_blocks=len(parts))
        done = rows.map_batches(Embed, fn_constructor_args=tuple(paths), batch_size=1, concurrency=workers)
        print(f"{sum(row['n'] for row in done.iter_rows())} texts")
