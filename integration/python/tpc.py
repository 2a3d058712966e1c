"""Makes the data and the queries of TPC-H and TPC-DS.

usage: tpc.py DIRECTORY TPCH_SCALE TPCDS_SCALE

Writes DIRECTORY/tpch and DIRECTORY/tpcds: one Parquet file per table, one .sql
file per query. Everything is made beside DIRECTORY and renamed into place, so
that a directory is whole or absent. Nothing is fetched: the generators are in
the packages of tpc-requirements.txt.
"""

import pathlib
import shutil
import sys

import duckdb
import duckdb_ext


def extension(name):
    """The generator's library, which lies in the packages' common folder."""
    for folder in duckdb_ext.__path__:
        for file in pathlib.Path(folder).rglob(f"{name}.duckdb_extension"):
            return file
    sys.exit(f"{name}.duckdb_extension is not installed: use tpc-requirements.txt")


def make(directory, name, generate, queries):
    """Generates one suite in a database of its own and writes it out."""
    directory.mkdir(parents=True)
    database = duckdb.connect(config={"allow_unsigned_extensions": "true"})
    database.execute(f"LOAD '{extension(name)}'")
    database.execute(generate)
    for (table,) in database.execute("SELECT table_name FROM duckdb_tables()").fetchall():
        database.execute(f"COPY {table} TO '{directory / table}.parquet' (FORMAT parquet)")
    for number, text in database.execute(f"SELECT query_nr, query FROM {queries}()").fetchall():
        (directory / f"q{number:02}.sql").write_text(text.strip() + "\n", encoding="utf-8")
    database.close()


def main(target, tpch_scale, tpcds_scale):
    target = pathlib.Path(target)
    staged = target.with_name(target.name + ".new")
    shutil.rmtree(staged, ignore_errors=True)
    make(staged / "tpch", "tpch", f"CALL dbgen(sf = {float(tpch_scale)})", "tpch_queries")
    make(staged / "tpcds", "tpcds", f"CALL dsdgen(sf = {float(tpcds_scale)})", "tpcds_queries")
    shutil.rmtree(target, ignore_errors=True)
    staged.rename(target)


if __name__ == "__main__":
    main(*sys.argv[1:])
