package integration

import (
	"context"
	"database/sql"
	"path/filepath"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/flight"
	_ "github.com/apache/arrow-go/v18/arrow/flight/flightsql/driver" // database/sql driver "flightsql"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// TestPlainFlightClientReadsATable: PATH [default, flights], no Flight SQL.
func TestPlainFlightClientReadsATable(t *testing.T) {
	s := start(t, filepath.Join(t.TempDir(), "data"), "--memory-budget", "256MiB")
	s.ask(t, "CREATE TABLE flights AS SELECT i AS id, 'n' || i AS name FROM range(50000) AS r(i)")
	client, err := flight.NewClientWithMiddleware(s.flight, nil, nil, grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	defer func() { require.NoError(t, client.Close()) }()
	for _, path := range [][]string{{"flights"}, {"default", "flights"}, {"memory", "default", "flights"}} {
		info, err := client.GetFlightInfo(t.Context(), &flight.FlightDescriptor{Type: flight.DescriptorPATH, Path: path})
		require.NoError(t, err, path)
		declared, err := flight.DeserializeSchema(info.Schema, nil)
		require.NoError(t, err)
		require.Equal(t, int64(50000), countRows(t, client, info, func(r *flight.Reader) { require.True(t, r.Schema().Equal(declared)) }))
	}
	_, err = client.GetFlightInfo(t.Context(), &flight.FlightDescriptor{Type: flight.DescriptorPATH, Path: []string{"default", "nothing"}})
	require.ErrorContains(t, err, "nothing")
}

func countRows(t *testing.T, client flight.Client, info *flight.FlightInfo, check func(*flight.Reader)) int64 {
	t.Helper()
	var rows int64
	for _, endpoint := range info.Endpoint {
		stream, err := client.DoGet(t.Context(), endpoint.Ticket)
		require.NoError(t, err)
		reader, err := flight.NewRecordReader(stream)
		require.NoError(t, err)
		check(reader)
		for reader.Next() {
			rows += reader.RecordBatch().NumRows()
		}
		require.NoError(t, reader.Err())
		reader.Release()
	}
	return rows
}

// TestDatabaseSQLDriver: Go's database/sql over Flight SQL, with parameters.
func TestDatabaseSQLDriver(t *testing.T) {
	s := start(t, filepath.Join(t.TempDir(), "data"), "--memory-budget", "256MiB")
	db, err := sql.Open("flightsql", "flightsql://"+s.flight)
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	ctx := t.Context()
	_, err = db.ExecContext(ctx, "CREATE TABLE t (id BIGINT, name VARCHAR)")
	require.NoError(t, err)
	result, err := db.ExecContext(ctx, "INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, NULL)")
	require.NoError(t, err)
	changed, err := result.RowsAffected()
	require.NoError(t, err)
	require.Equal(t, int64(3), changed)
	require.Equal(t, []string{"b"}, names(ctx, t, db, "SELECT name FROM t WHERE id = ?", int64(2)))
	require.Equal(t, []string{"a", "b"}, names(ctx, t, db, "SELECT name FROM t WHERE name IS NOT NULL ORDER BY id"))
}

func names(ctx context.Context, t *testing.T, db *sql.DB, query string, args ...any) []string {
	t.Helper()
	rows, err := db.QueryContext(ctx, query, args...)
	require.NoError(t, err)
	defer rows.Close()
	var out []string
	for rows.Next() {
		var name string
		require.NoError(t, rows.Scan(&name))
		out = append(out, name)
	}
	require.NoError(t, rows.Err())
	return out
}
