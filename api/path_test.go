package api_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/flight"
	"github.com/stretchr/testify/require"

	"github.com/memconn/memconn/api"
	"github.com/memconn/memconn/api/apitest"
)

// The thin whole path: upload by HTTP, query by REST and Flight SQL, read by PATH.
func TestWholePath(t *testing.T) {
	s := apitest.Start(t, api.Options{})
	r := s.Do("POST", "/v1/schemas/default/tables/t/data?create=true&sorted_by=id", "id,name\n2,b\n1,a\n3,\n", "Content-Type", "text/csv")
	require.Equal(t, 200, r.Status, "%s", r.Body)
	require.Equal(t, json.Number("3"), r.JSON(t)["rows"])
	require.Equal(t, []any{[]any{json.Number("1"), "a"}, []any{json.Number("2"), "b"}, []any{json.Number("3"), nil}},
		s.Query("SELECT id, name FROM t ORDER BY id"))

	ctx := context.Background()
	client := s.Client()
	info, err := client.Execute(ctx, "SELECT count(*) AS n FROM t")
	require.NoError(t, err)
	require.Len(t, info.Endpoint, 1)
	rdr, err := client.DoGet(ctx, info.Endpoint[0].Ticket)
	require.NoError(t, err)
	require.True(t, rdr.Next())
	require.EqualValues(t, 1, rdr.RecordBatch().NumRows())
	require.Equal(t, "3", rdr.RecordBatch().Column(0).ValueStr(0))
	rdr.Release()

	info, err = client.Client.GetFlightInfo(ctx, &flight.FlightDescriptor{Type: flight.DescriptorPATH, Path: []string{"t"}})
	require.NoError(t, err)
	rdr, err = client.DoGet(ctx, info.Endpoint[0].Ticket)
	require.NoError(t, err)
	rows := int64(0)
	for rdr.Next() {
		rows += rdr.RecordBatch().NumRows()
	}
	require.NoError(t, rdr.Err())
	require.EqualValues(t, 3, rows)
	rdr.Release()
}
