package flightsrv

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/flight"
	"github.com/apache/arrow-go/v18/arrow/ipc"

	"github.com/memconn/memconn/api/fileformat"
	"github.com/memconn/memconn/api/wire"
	"github.com/memconn/memconn/connector"
	"github.com/memconn/memconn/spill/ipccheck"
)

// peeked gives the messages of a DoPut again from the first, which was already received. It looks each over before Arrow's
// decoder sees it.
type peeked struct {
	flight.FlightService_DoPutServer
	first *flight.FlightData
}

func (p *peeked) Recv() (*flight.FlightData, error) {
	message := p.first
	p.first = nil
	if message == nil {
		var err error
		if message, err = p.FlightService_DoPutServer.Recv(); err != nil {
			return nil, err
		}
	}
	if len(message.DataHeader) > 0 {
		if err := ipccheck.Message(message.DataHeader); err != nil {
			return nil, wire.Invalid("the stream is malformed: %s", err)
		}
	}
	return message, nil
}

// DoPut appends to a table (PATH), stages a fragment (PATH with a write id in the first message's app_metadata), or runs a Flight
// SQL command. The first message must carry the descriptor: arrow-go dereferences it unchecked.
func (s *Service) DoPut(stream flight.FlightService_DoPutServer) error {
	first, err := stream.Recv()
	if errors.Is(err, io.EOF) {
		return wire.Invalid("the stream is empty: its first message must carry a descriptor")
	}
	if err != nil {
		return err
	}
	k, err := kindOf(first.FlightDescriptor)
	if err != nil {
		return err
	}
	in := &peeked{stream, first}
	switch k {
	case kindPath:
		return s.putTable(first.FlightDescriptor.Path, first.AppMetadata, in)
	case kindSQL:
		return s.sql.DoPut(in)
	default:
		return wire.Invalid("DoPut takes the path of a table or a Flight SQL command")
	}
}

// fragmentTarget is the app_metadata that makes a DoPut a fragment of a staged write.
type fragmentTarget struct {
	WriteID string `json:"writeId"`
	Task    string `json:"task"`
}

// putResult is the app_metadata of the answer to an append.
type putResult struct {
	Rows    int64  `json:"rows"`
	Version uint64 `json:"version"`
}

func (s *Service) putTable(path []string, metadata []byte, in *peeked) error {
	ctx := in.Context()
	name, err := s.tableOf(ctx, path)
	if err != nil {
		return err
	}
	rdr, err := flight.NewRecordReader(in, ipc.WithAllocator(fileformat.BoundedAllocator(s.mem)))
	if err != nil {
		return wire.Invalid("the stream does not begin with an Arrow schema: %s", err)
	}
	defer rdr.Release()
	var answer any
	if len(metadata) > 0 {
		answer, err = s.putFragment(ctx, name, metadata, rdr)
	} else {
		answer, err = s.putAppend(ctx, name, rdr)
	}
	if err != nil {
		return err
	}
	body, err := json.Marshal(answer)
	if err != nil {
		return fmt.Errorf("encode the answer: %w", err)
	}
	return in.Send(&flight.PutResult{AppMetadata: body})
}

func (s *Service) putAppend(ctx context.Context, name connector.TableName, rdr *flight.Reader) (any, error) {
	checked, err := newChecked(ctx, rdr)
	if err != nil {
		return nil, err
	}
	result, err := s.o.Connector.Append(ctx, connector.WriteRequest{Table: name, Mode: connector.WriteAppend}, checked)
	if err := checked.prefer(err); err != nil {
		return nil, err
	}
	return putResult{Rows: result.Rows, Version: result.Version}, nil
}

func (s *Service) putFragment(ctx context.Context, name connector.TableName, metadata []byte, rdr *flight.Reader) (any, error) {
	target := fragmentTarget{WriteID: string(metadata)}
	if metadata[0] == '{' {
		target = fragmentTarget{}
		if err := wire.DecodeStrict(strings.NewReader(string(metadata)), &target); err != nil {
			return nil, err
		}
	}
	checked, err := newChecked(ctx, rdr)
	if err != nil {
		return nil, err
	}
	write, err := s.o.Connector.FindWrite(target.WriteID)
	if err != nil {
		return nil, err
	}
	if t := write.Table(); !strings.EqualFold(t.Schema, name.Schema) || !strings.EqualFold(t.Table, name.Table) {
		return nil, wire.Invalid("write %s is for table %s, the descriptor names %s", target.WriteID, t, name)
	}
	sink, err := write.NewSink(ctx, target.Task)
	if err != nil {
		return nil, err
	}
	for checked.Next() {
		if err := sink.Append(ctx, checked.RecordBatch()); err != nil {
			return nil, errors.Join(err, sink.Abort(context.WithoutCancel(ctx)))
		}
	}
	if err := checked.Err(); err != nil {
		return nil, errors.Join(err, sink.Abort(context.WithoutCancel(ctx)))
	}
	return sink.Finish(ctx)
}

// checkedReader validates every batch of an incoming stream, turns panics over malformed messages into errors, and makes
// its own errors INVALID_ARGUMENT. It ends when the call does.
type checkedReader struct {
	array.RecordReader
	ctx  context.Context //nolint:containedctx // a RecordReader has no other way to hear of the call's end
	rows int64
	err  error
}

func newChecked(ctx context.Context, rdr array.RecordReader) (*checkedReader, error) {
	c := &checkedReader{RecordReader: rdr, ctx: ctx}
	c.Schema()
	return c, c.err
}

func (c *checkedReader) Next() (ok bool) {
	defer func() {
		if p := recover(); p != nil {
			c.err = wire.Invalid("after row %d: the stream is malformed: %v", c.rows, p)
			ok = false
		}
	}()
	if c.err != nil {
		return false
	}
	if c.err = c.ctx.Err(); c.err != nil {
		return false
	}
	if !c.RecordReader.Next() {
		if err := c.RecordReader.Err(); err != nil {
			c.err = c.readError(err)
		}
		return false
	}
	batch := c.RecordReader.RecordBatch()
	if err := fileformat.Validate(batch); err != nil {
		c.err = wire.Invalid("after row %d: %s", c.rows, err)
		return false
	}
	c.rows += batch.NumRows()
	return true
}

// readError keeps the end of the call apart from malformed bytes.
func (c *checkedReader) readError(err error) error {
	if ctxErr := c.ctx.Err(); ctxErr != nil {
		return ctxErr
	}
	return wire.Invalid("after row %d: the stream is malformed: %s", c.rows, err)
}

func (c *checkedReader) Schema() (schema *arrow.Schema) {
	defer func() {
		if p := recover(); p != nil {
			c.err = wire.Invalid("the stream's schema is malformed: %v", p)
			schema = arrow.NewSchema(nil, nil)
		}
	}()
	if schema = c.RecordReader.Schema(); schema == nil {
		c.err = wire.Invalid("the stream has no schema: %v", c.RecordReader.Err())
		return arrow.NewSchema(nil, nil)
	}
	return schema
}

func (c *checkedReader) Err() error { return c.err }

// prefer gives the reader's own error, which says more, over what the consumer made of it.
func (c *checkedReader) prefer(err error) error {
	if err != nil && c.err != nil {
		return c.err
	}
	return err
}
