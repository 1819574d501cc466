"""bulk_embed.py with Spark: python spark_embed.py MODEL FILE FOLDER [WORKERS]."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator

import bulk_embed
import pandas as pd
from pyspark.sql import SparkSession

if __name__ == "__main__":
    paths = sys.argv[1:4]
    workers = int(sys.argv[4]) if len(sys.argv) > 4 else os.cpu_count() or 1
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    master = os.environ.get("SPARK_MASTER", f"local[{workers}]")
    spark = SparkSession.builder.master(master).config("spark.ui.enabled", "false").getOrCreate()
    spark.sparkContext.addPyFile(bulk_embed.__file__)

    def embed(frames: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        """Write the parts of a worker, which keeps the model open. Texts go from the file to the model."""
        import bulk_embed

        for frame in frames:
            parts = (bulk_embed.Part(*(int(value) for value in row)) for row in frame.itertuples(index=False))
            yield pd.DataFrame({"n": [bulk_embed.write_part(*paths, part) for part in parts]})

    parts = bulk_embed.missing_parts(*paths)
    if parts:
        rows = spark.createDataFrame(parts, "number long, begin long, end long").repartition(len(parts))
        print(f"{rows.mapInPandas(embed, 'n long').groupBy().sum().first()[0]} texts")
    spark.stop()
