"""What a Python user does with memconn: pyarrow's Flight client and ADBC.

Run as: python clients.py grpc://host:port. Every check is an assertion; the
script ends with 'ok' when all of them held.
"""

import datetime
import decimal
import sys

import adbc_driver_flightsql.dbapi as flightsql
import pyarrow as pa
import pyarrow.flight as flight


def table() -> pa.Table:
    return pa.table(
        {
            "id": pa.array(range(10_000), pa.int64()),
            "name": pa.array([None if i % 7 == 0 else f"name {i}" for i in range(10_000)], pa.string()),
            "price": pa.array([decimal.Decimal(i) / 4 for i in range(10_000)], pa.decimal128(12, 2)),
            "day": pa.array([datetime.date(2001, 1, 1 + i % 28) for i in range(10_000)], pa.date32()),
            "ratio": pa.array([i / 3 for i in range(10_000)], pa.float64()),
            "low": pa.array(["red", "green", "blue", "red"] * 2_500).dictionary_encode(),
        }
    )


def ingest(cursor) -> None:
    rows = table()
    assert cursor.adbc_ingest("t", rows, mode="create") == 10_000
    assert cursor.adbc_ingest("t", rows, mode="append") == 10_000
    assert cursor.adbc_ingest("t", rows, mode="replace") == 10_000
    assert cursor.adbc_ingest("t", rows, mode="create_append") == 10_000
    try:
        cursor.adbc_ingest("t", rows, mode="create")
        raise AssertionError("create over an existing table was accepted")
    except Exception as e:  # the driver's own error class
        assert "exists" in str(e), e
    cursor.execute("SELECT count(*), count(DISTINCT id), count(name) FROM t")
    assert cursor.fetchall() == [(20_000, 10_000, 2 * (10_000 - 1_429))]


def queries(cursor) -> None:
    cursor.execute("SELECT 1")
    assert cursor.fetchall() == [(1,)]
    cursor.execute("SELECT id, name, price, day, low FROM t WHERE id = 6 LIMIT 1")
    assert cursor.fetchall() == [(6, "name 6", decimal.Decimal("1.50"), datetime.date(2001, 1, 7), "blue")], "row 6"
    cursor.execute("SELECT count(*) FROM t WHERE id = ?", parameters=(3,))
    assert cursor.fetchall() == [(2,)]
    cursor.execute("SELECT low, sum(price), avg(ratio) FROM t GROUP BY low ORDER BY low")
    assert [row[0] for row in cursor.fetchall()] == ["blue", "green", "red"]
    cursor.execute("SELECT * FROM t WHERE false")
    empty = cursor.fetch_arrow_table()
    assert empty.num_rows == 0 and empty.column_names == table().column_names
    try:
        cursor.execute("SELECT * FROM nothing")
        cursor.fetchall()
        raise AssertionError("a missing table was read")
    except Exception as e:
        assert "nothing" in str(e), e
    cursor.executemany("INSERT INTO t (id, name) VALUES (?, ?)", [(-1, "x"), (-2, None)])
    cursor.execute("SELECT id, name FROM t WHERE id < 0 ORDER BY id")
    assert cursor.fetchall() == [(-2, None), (-1, "x")]


def metadata(connection) -> None:
    info = connection.adbc_get_info()
    assert "memconn" in info["vendor_name"].lower(), info
    schema = connection.adbc_get_table_schema("t")
    assert schema.names == table().column_names, schema
    tree = connection.adbc_get_objects(depth="all").read_all().to_pylist()
    names = [
        t["table_name"]
        for catalog in tree
        for schema in catalog["catalog_db_schemas"] or []
        for t in schema["db_schema_tables"] or []
    ]
    assert "t" in names, tree
    assert "TABLE" in connection.adbc_get_table_types()


def plain(url: str) -> None:
    client = flight.connect(url)
    info = client.get_flight_info(flight.FlightDescriptor.for_path("default", "t"))
    rows = client.do_get(info.endpoints[0].ticket).read_all()
    assert rows.num_rows == 20_002 and rows.schema == info.schema, rows.schema
    writer, _ = client.do_put(flight.FlightDescriptor.for_path("default", "t"), rows.schema)
    writer.write_table(rows.slice(0, 5))
    writer.close()
    info = client.get_flight_info(flight.FlightDescriptor.for_command(b"SELECT count(*) AS n FROM t"))
    assert client.do_get(info.endpoints[0].ticket).read_all().to_pylist() == [{"n": 20_007}]
    client.close()


def main() -> None:
    url = sys.argv[1]
    with flightsql.connect(url, autocommit=True) as connection:
        with connection.cursor() as cursor:
            ingest(cursor)
            queries(cursor)
        metadata(connection)
    plain(url)
    print("ok")


main()
