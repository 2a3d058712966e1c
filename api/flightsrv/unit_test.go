package flightsrv

import (
	"context"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/flight"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestLike(t *testing.T) {
	for _, c := range []struct {
		pattern, name string
		want          bool
	}{
		{"%", "", true},
		{"", "", true},
		{"", "a", false},
		{"a%", "ABC", true},
		{"%b%", "abc", true},
		{"a_c", "abc", true},
		{"a_c", "ac", false},
		{`a\_c`, "abc", false},
		{`a\_c`, "a_c", true},
		{`100\%`, "100%", true},
		{`100\%`, "1000", false},
		{"%a%a%a%b", strings.Repeat("a", 200), false},
		{`\`, `x`, false},
		{"ü_", "ÜX", true},
	} {
		require.Equal(t, c.want, like(&c.pattern, c.name), "%s ~ %s", c.name, c.pattern)
	}
	require.True(t, like(nil, "x"))
}

type counter struct{ sizes []int }

func (c *counter) Send(m *flight.FlightData) error {
	c.sizes = append(c.sizes, proto.Size(m))
	return nil
}

// Whatever the batch holds, messages stay below the bound, unless they hold one row.
func TestMessagesAreCut(t *testing.T) {
	mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
	defer mem.AssertSize(t, 0)
	schema := arrow.NewSchema([]arrow.Field{
		{Name: "i", Type: arrow.PrimitiveTypes.Int64},
		{Name: "s", Type: arrow.BinaryTypes.String, Nullable: true},
		{Name: "l", Type: arrow.ListOf(arrow.BinaryTypes.String)},
	}, nil)
	b := array.NewRecordBuilder(mem, schema)
	defer b.Release()
	random := rand.New(rand.NewPCG(1, 2))
	for i := range 3000 {
		b.Field(0).(*array.Int64Builder).Append(int64(i))
		long := 10
		if i%500 == 7 {
			long = 2_000_000
		}
		b.Field(1).(*array.StringBuilder).Append(strings.Repeat("x", random.IntN(long)))
		list := b.Field(2).(*array.ListBuilder)
		list.Append(true)
		for range i % 5 {
			list.ValueBuilder().(*array.StringBuilder).Append("yyyyyyyyyyyyyyyy")
		}
	}
	batch := b.NewRecordBatch()
	defer batch.Release()
	out := &counter{}
	w := flight.NewRecordWriter(out, ipc.WithSchema(schema), ipc.WithAllocator(mem))
	require.NoError(t, writeCut(w, batch, batchBytes(batch)))
	require.NoError(t, w.Close())
	require.Greater(t, len(out.sizes), 2)
	for _, size := range out.sizes {
		require.Less(t, size, 4<<20)
	}
	cut := chunks(batch.NewSlice(0, 3000))
	rows := int64(0)
	for c := range cut {
		rows += c.Data.NumRows()
		c.Data.Release()
	}
	require.EqualValues(t, 3000, rows)
}

func TestSessionsByCookie(t *testing.T) {
	table := newSessionTable(2, time.Hour)
	now := time.Unix(1000, 0)
	table.now = func() time.Time { return now }
	first := ConnTagger().TagConn(context.Background(), nil)
	s := table.of(first)
	require.Same(t, s, table.of(first), "a connection keeps its session")
	table.name(first, s)
	with := func(cookie string) context.Context {
		ctx := ConnTagger().TagConn(context.Background(), nil)
		return metadata.NewIncomingContext(ctx, metadata.Pairs("cookie", "a=b; "+cookieName+"="+cookie))
	}
	require.Same(t, s, table.of(with(s.cookie)), "another connection finds it by its cookie")
	require.NotSame(t, s, table.of(with("forged")))
	now = now.Add(2 * time.Hour)
	require.NotSame(t, s, table.of(with(s.cookie)), "it was idle too long")
	for range 5 {
		ctx := ConnTagger().TagConn(context.Background(), nil)
		table.name(ctx, table.of(ctx))
		now = now.Add(time.Second)
	}
	require.LessOrEqual(t, len(table.mu.byCookie), 2)
	table.end(first)
	require.NotSame(t, s, table.of(first))
}
