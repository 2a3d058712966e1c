package api_test

import (
	"bytes"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/flight"
	"github.com/apache/arrow-go/v18/arrow/flight/flightsql"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"

	"github.com/memconn/memconn/api"
	"github.com/memconn/memconn/api/apitest"
	"github.com/memconn/memconn/internal/hostile"
)

// Goal: tickets and commands of Flight take memory for the bytes that came. Method: huge counts all over a sound ticket and a
// sound command, sent to a real server in this process: a call of its own takes far less than the bound.
func TestTicketsAllocateByWhatCame(t *testing.T) {
	s := apitest.Start(t, api.Options{})
	c := s.Client()
	_, err := c.ExecuteUpdate(ctx, "CREATE TABLE t (id BIGINT)")
	require.NoError(t, err)
	raw := c.Client
	get := func(ticket []byte) error {
		stream, err := raw.DoGet(ctx, &flight.Ticket{Ticket: bytes.Clone(ticket)})
		if err != nil {
			return err
		}
		for err == nil {
			_, err = stream.Recv()
		}
		return err
	}
	describe := func(command []byte) error {
		_, err := raw.GetFlightInfo(ctx, &flight.FlightDescriptor{Type: flight.DescriptorCMD, Cmd: bytes.Clone(command)}, grpc.WaitForReady(true))
		return err
	}
	info, err := c.GetTables(ctx, &flightsql.GetTablesOpts{IncludeSchema: true})
	require.NoError(t, err)
	command := info.Endpoint[0].Ticket.Ticket
	require.ErrorIs(t, get(command), errEOF)
	require.NoError(t, describe(command))
	info, err = c.Execute(ctx, "SELECT count(*) FROM t")
	require.NoError(t, err)
	ticket := info.Endpoint[0].Ticket.Ticket
	require.ErrorIs(t, get(ticket), errEOF)
	for name, sound := range map[string][]byte{"ticket": ticket, "command": command} {
		t.Run(name, func(t *testing.T) {
			hostile.Inputs(t, sound, 1<<20, func(bad []byte) {
				_ = get(bad)
				_ = describe(bad)
			})
		})
	}
}
