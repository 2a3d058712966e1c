package api_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/flight"
	"github.com/apache/arrow-go/v18/arrow/flight/flightsql"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/memconn/memconn/api"
	"github.com/memconn/memconn/api/apitest"
)

func TestPlainFlight(t *testing.T) {
	s := apitest.Start(t, api.Options{})
	s.Exec("CREATE TABLE t (id BIGINT, name VARCHAR)", "INSERT INTO t VALUES (1,'a'), (2,'b'), (3,NULL)")
	c := s.Client()
	get := func(d *flight.FlightDescriptor) ([][]string, error) {
		info, err := c.Client.GetFlightInfo(ctx, d)
		if err != nil {
			return nil, err
		}
		return read(t, c, info), nil
	}
	path := func(p ...string) *flight.FlightDescriptor {
		return &flight.FlightDescriptor{Type: flight.DescriptorPATH, Path: p}
	}
	cmd := func(text string) *flight.FlightDescriptor {
		return &flight.FlightDescriptor{Type: flight.DescriptorCMD, Cmd: []byte(text)}
	}
	for _, c := range []struct {
		d    *flight.FlightDescriptor
		rows int
		code codes.Code
	}{
		{path("t"), 3, codes.OK},
		{path("default", "t"), 3, codes.OK},
		{path("memory", "default", "t"), 3, codes.OK},
		{path("nope"), 0, codes.NotFound},
		{path("nope", "t"), 0, codes.NotFound},
		{path("other", "default", "t"), 0, codes.InvalidArgument},
		{path(), 0, codes.InvalidArgument},
		{path("a", "b", "c", "d"), 0, codes.InvalidArgument},
		{cmd("SELECT * FROM t WHERE id > 1"), 2, codes.OK},
		{cmd(""), 0, codes.InvalidArgument},
		{cmd("\xff\x00"), 0, codes.InvalidArgument},
		{cmd(`{"table":"t","columns":["name"],"limit":2}`), 2, codes.OK},
		{cmd(`{"table":"t","limit":0}`), 0, codes.OK},
		{cmd(`{"table":"t","constraint":{"columns":[{"name":"id","type":"int64","nullAllowed":false,"ranges":[{"low":{"v":"2","incl":true}}]}]}}`), 2, codes.OK},
		{cmd(`{"table":"t","constraint":{"columns":[{"name":"name","type":"utf8","nullAllowed":true,"notValues":["a"]}]}}`), 2, codes.OK},
		{cmd(`{"table":"t","constraint":{"none":true}}`), 0, codes.OK},
		{cmd(`{"tabel":"t"}`), 0, codes.InvalidArgument},
		{cmd(`{"table":"t","constraint":{"columns":[{"name":"id","type":"int32","all":true}]}}`), 0, codes.InvalidArgument},
		{cmd(`{"table":"t","columns":["nope"]}`), 0, codes.InvalidArgument},
		{cmd(`{`), 0, codes.InvalidArgument},
		{&flight.FlightDescriptor{}, 0, codes.InvalidArgument},
	} {
		rows, err := get(c.d)
		requireCode(t, c.code, err)
		require.Len(t, rows, c.rows, "%v", c.d)
	}
	got, err := c.Client.GetSchema(ctx, path("t"))
	require.NoError(t, err)
	schema, err := flight.DeserializeSchema(got.Schema, memory.DefaultAllocator)
	require.NoError(t, err)
	require.Equal(t, 2, schema.NumFields())

	// A ticket is pinned to its snapshot and can be read again.
	info, err := c.Client.GetFlightInfo(ctx, path("t"))
	require.NoError(t, err)
	put := func(d *flight.FlightDescriptor, metadata string, batches ...arrow.RecordBatch) (string, error) {
		stream, err := c.Client.DoPut(ctx)
		require.NoError(t, err)
		w := flight.NewRecordWriter(stream, ipc.WithSchema(batches[0].Schema()))
		w.SetFlightDescriptor(d)
		for _, b := range batches {
			if err := w.WriteWithAppMetadata(b, []byte(metadata)); err != nil {
				break
			}
		}
		_ = w.Close() // the server may have answered and ended the stream already
		_ = stream.CloseSend()
		result, err := stream.Recv()
		return string(result.GetAppMetadata()), err
	}
	answer, err := put(path("t"), "", batchOf([]int64{4}, []string{"d"}))
	require.NoError(t, err)
	require.Contains(t, answer, `"rows":1`)
	require.Len(t, read(t, c, info), 3)
	require.Len(t, read(t, c, info), 3)
	rows, err := get(path("t"))
	require.NoError(t, err)
	require.Len(t, rows, 4)
	_, err = put(path("nope"), "", batchOf([]int64{4}, []string{"d"}))
	requireCode(t, codes.NotFound, err)

	// A staged write: begin, two fragments of which one is listed, commit.
	action := func(kind, body string) (string, error) {
		stream, err := c.Client.DoAction(ctx, &flight.Action{Type: kind, Body: []byte(body)})
		require.NoError(t, err)
		var all []string
		for {
			r, err := stream.Recv()
			if errors.Is(err, io.EOF) {
				return strings.Join(all, "\n"), nil
			}
			if err != nil {
				return "", err
			}
			all = append(all, string(r.Body))
		}
	}
	begun, err := action("begin_write", `{"table":"t"}`)
	require.NoError(t, err)
	var write struct {
		WriteID string `json:"writeId"`
	}
	require.NoError(t, json.Unmarshal([]byte(begun), &write))
	keep, err := put(path("t"), write.WriteID, batchOf([]int64{5}, []string{"e"}))
	require.NoError(t, err)
	_, err = put(path("t"), fmt.Sprintf(`{"writeId":%q,"task":"retry"}`, write.WriteID), batchOf([]int64{6}, []string{"lost"}))
	require.NoError(t, err)
	done, err := action("commit_write", fmt.Sprintf(`{"writeId":%q,"fragments":[%s]}`, write.WriteID, keep))
	require.NoError(t, err)
	require.Contains(t, done, `"rows":1`)
	rows, err = get(cmd("SELECT id FROM t WHERE id >= 5"))
	require.NoError(t, err)
	require.Equal(t, [][]string{{"5"}}, rows)
	_, err = action("commit_write", `{"writeId":"nope","fragments":[]}`)
	requireCode(t, codes.NotFound, err)
	_, err = action("nope", "")
	requireCode(t, codes.InvalidArgument, err)
	list, err := action("list_tables", `{"schema":"default"}`)
	require.NoError(t, err)
	require.Equal(t, `{"schema":"default","name":"t","rows":5}`, list)
	list, err = action("list_schemas", "")
	require.NoError(t, err)
	require.Equal(t, `{"name":"default"}`, list)
	list, err = action("discovery", "")
	require.NoError(t, err)
	require.Contains(t, list, `"catalog":"memory"`)

	// Cancel forgets the ticket; renewing it is NotFound then.
	cancelled, err := c.CancelFlightInfo(ctx, &flight.CancelFlightInfoRequest{Info: info})
	require.NoError(t, err)
	require.Equal(t, flight.CancelStatusCancelled, cancelled.Status)
	_, err = c.RenewFlightEndpoint(ctx, &flight.RenewFlightEndpointRequest{Endpoint: info.Endpoint[0]})
	requireCode(t, codes.NotFound, err)
	_, err = c.DoGet(ctx, info.Endpoint[0].Ticket)
	requireCode(t, codes.NotFound, err)
}

// What hostile clients send is answered with an error, and the server lives.
func TestFlightAbuse(t *testing.T) {
	s := apitest.Start(t, api.Options{})
	s.Exec("CREATE TABLE t (id BIGINT, name VARCHAR)")
	c := s.Client()
	path := &flight.FlightDescriptor{Type: flight.DescriptorPATH, Path: []string{"t"}}
	var messages []*flight.FlightData
	w := flight.NewRecordWriter(collector{&messages}, ipc.WithSchema(batchOf(nil, nil).Schema()))
	b := batchOf([]int64{7, 8}, []string{"abc", "def"})
	require.NoError(t, w.Write(b))
	require.NoError(t, w.Close())
	require.Len(t, messages, 2)
	schema, batch := messages[0], messages[1]

	corrupt := func(m *flight.FlightData, change func(header, body []byte)) *flight.FlightData {
		header, body := append([]byte{}, m.DataHeader...), append([]byte{}, m.DataBody...)
		change(header, body)
		return &flight.FlightData{DataHeader: header, DataBody: body, FlightDescriptor: m.FlightDescriptor}
	}
	with := func(m *flight.FlightData, d *flight.FlightDescriptor) *flight.FlightData {
		return &flight.FlightData{DataHeader: m.DataHeader, DataBody: m.DataBody, FlightDescriptor: d}
	}
	for name, stream := range map[string][]*flight.FlightData{
		"nothing":         {},
		"no descriptor":   {schema, batch},
		"no schema":       {with(batch, path)},
		"descriptor only": {{FlightDescriptor: path}},
		"garbage header":  {{FlightDescriptor: path, DataHeader: []byte("garbage that is no flatbuffer")}},
		"short header":    {{FlightDescriptor: path, DataHeader: []byte{1}}},
		"body cut":        {with(schema, path), {DataHeader: batch.DataHeader, DataBody: batch.DataBody[:8]}},
		"no body":         {with(schema, path), {DataHeader: batch.DataHeader}},
		"two schemas":     {with(schema, path), schema},
		"unknown command": {with(schema, &flight.FlightDescriptor{Type: flight.DescriptorCMD, Cmd: []byte{0x0a, 0x01, 'x'}})},
		"offsets past the buffer": {with(schema, path), corrupt(batch, func(_, body []byte) {
			for i := 0; i+12 <= len(body); i += 4 {
				if body[i] == 0 && body[i+4] == 3 && body[i+8] == 6 {
					body[i+7] = 0x20
				}
			}
		})},
	} {
		put, err := c.Client.DoPut(ctx)
		require.NoError(t, err)
		for _, m := range stream {
			if put.Send(m) != nil {
				break
			}
		}
		require.NoError(t, put.CloseSend())
		_, err = put.Recv()
		require.Error(t, err, name)
		require.Contains(t, []codes.Code{codes.InvalidArgument}, status.Code(err), "%s: %v", name, err)
	}
	for i := range len(schema.DataHeader) * 8 {
		put, err := c.Client.DoPut(ctx)
		require.NoError(t, err)
		bad := corrupt(with(schema, path), func(header, _ []byte) { header[i/8] ^= 1 << (i % 8) })
		_ = put.Send(bad)
		_ = put.CloseSend()
		_, _ = put.Recv()
	}
	for _, ticket := range [][]byte{nil, []byte("x"), []byte("SELECT 1"), {0x0a, 0xff}, make([]byte, 1000)} {
		rdr, err := c.DoGet(ctx, &flight.Ticket{Ticket: ticket})
		if err == nil {
			rdr.Next()
			err = rdr.Err()
			rdr.Release()
		}
		requireCode(t, codes.NotFound, err)
	}
	forged, err := flightsql.CreateStatementQueryTicket([]byte("00000000000000000000000000000000"))
	require.NoError(t, err)
	_, err = c.DoGet(ctx, &flight.Ticket{Ticket: forged})
	requireCode(t, codes.NotFound, err)

	// A client that leaves in the middle of a DoPut leaves no rows.
	gone, cancel := context.WithCancel(ctx)
	put, err := c.Client.DoPut(gone)
	require.NoError(t, err)
	require.NoError(t, put.Send(with(schema, path)))
	require.NoError(t, put.Send(batch))
	cancel()
	_, err = put.Recv()
	requireCode(t, codes.Canceled, err)
	require.Equal(t, [][]string{{"0"}}, query(t, c, "SELECT count(*) FROM t"))

	// Drivers that were given a user name want a token back.
	authorised, err := c.Client.AuthenticateBasicToken(ctx, "user", "pass:word")
	require.NoError(t, err)
	_, err = c.Execute(authorised, "SELECT 1")
	require.NoError(t, err)

	ok, err := healthpb.NewHealthClient(grpcConn(t, s)).Check(ctx, &healthpb.HealthCheckRequest{})
	require.NoError(t, err)
	require.Equal(t, healthpb.HealthCheckResponse_SERVING, ok.Status)
}

type collector struct{ to *[]*flight.FlightData }

func (c collector) Send(m *flight.FlightData) error {
	*c.to = append(*c.to, &flight.FlightData{DataHeader: append([]byte{}, m.DataHeader...), DataBody: append([]byte{}, m.DataBody...)})
	return nil
}
