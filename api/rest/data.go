package rest

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/memconn/memconn/api/fileformat"
	"github.com/memconn/memconn/api/plan"
	"github.com/memconn/memconn/api/wire"
	"github.com/memconn/memconn/connector"
)

// exportData sends a table as a file.
func (h *Handler) exportData(w http.ResponseWriter, r *http.Request) (err error) {
	values, err := known(r, "format", "columns", "limit")
	if err != nil {
		return err
	}
	format, err := accepted(r, values.Get("format"), fileformat.ArrowStream, fileformat.CSV, fileformat.NDJSON, fileformat.Parquet, fileformat.ArrowFile)
	if err != nil {
		return err
	}
	name, err := tableName(r)
	if err != nil {
		return err
	}
	request := wire.ScanRequest{Schema: name.Schema, Table: name.Table}
	if text := values.Get("columns"); text != "" {
		request.Columns = strings.Split(text, ",")
	}
	if text := values.Get("limit"); text != "" {
		limit, err := parseCount("limit", text)
		if err != nil {
			return err
		}
		request.Limit = &limit
	}
	scan, err := plan.NewScan(r.Context(), h.o.Connector, request)
	if err != nil {
		return err
	}
	defer scan.Close()
	in, err := scan.Open(r.Context())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	return h.sendRows(w, r, format, rows{scan.Schema(), in.Next})
}

// deadlineReader renews the read deadline with every read, so that a client that sends nothing does not hold a staged write
// forever.
type deadlineReader struct {
	io.Reader
	control *http.ResponseController
}

func (d *deadlineReader) Read(p []byte) (int, error) {
	// A server that can't set deadlines (a test's recorder) does without.
	_ = d.control.SetReadDeadline(time.Now().Add(stallTimeout))
	n, err := d.Reader.Read(p)
	// The server goes on reading the connection while the request is served, to see its client leave: a deadline that
	// passes then would look like that, and cancel a statement that takes longer.
	_ = d.control.SetReadDeadline(time.Time{})
	return n, err
}

// open starts reading an uploaded file. schema is the wanted one for CSV and NDJSON, nil to infer it.
func (h *Handler) open(w http.ResponseWriter, r *http.Request, values url.Values, schema *arrow.Schema) (array.RecordReader, error) {
	format, err := uploadFormat(r, values.Get("format"))
	if err != nil {
		return nil, err
	}
	if encoding := r.Header.Get("Content-Encoding"); encoding != "" && encoding != "identity" {
		return nil, connector.Errorf(wire.CodeUnsupportedMedia, "Content-Encoding %s is not supported", encoding)
	}
	o := fileformat.Options{Schema: schema, TempDir: h.o.TempDir}
	switch d := values.Get("delimiter"); {
	case d == "tab" || d == `\t`:
		o.CSV.Delimiter = '\t'
	case len(d) > 1:
		return nil, wire.Invalid("the delimiter %q is not one ASCII character or tab", d)
	case d != "":
		o.CSV.Delimiter = d[0]
	}
	if values.Has("header") {
		header, err := flag(values, "header")
		if err != nil {
			return nil, err
		}
		o.CSV.NoHeader = !header
	}
	o.CSV.NullText = values.Get("null")
	body := r.Body
	if h.o.MaxUploadBytes > 0 {
		body = http.MaxBytesReader(w, body, h.o.MaxUploadBytes)
	}
	rdr, err := fileformat.Open(format, &deadlineReader{body, http.NewResponseController(w)}, o)
	if err != nil {
		return nil, uploadError(r, err)
	}
	return rdr, nil
}

func uploadFormat(r *http.Request, override string) (fileformat.Format, error) {
	if override != "" {
		f, err := fileformat.ParseFormat(override)
		if err != nil {
			return 0, wire.Invalid("%s", err)
		}
		return f, nil
	}
	f, ok := fileformat.FromContentType(r.Header.Get("Content-Type"))
	if !ok {
		return 0, connector.Errorf(wire.CodeUnsupportedMedia,
			"Content-Type %q is not supported: send an Arrow stream or file, Parquet, CSV or NDJSON, or name the format in ?format=", r.Header.Get("Content-Type"))
	}
	return f, nil
}

// uploadError makes errors over the bytes INVALID_ARGUMENT and leaves the ends of requests alone.
func uploadError(r *http.Request, err error) error {
	var tooLarge *http.MaxBytesError
	var own *connector.Error
	if errors.As(err, &tooLarge) || errors.As(err, &own) {
		return err
	}
	if ctxErr := r.Context().Err(); ctxErr != nil {
		return ctxErr
	}
	return wire.Invalid("%s", err)
}

// uploaded is a reader whose errors are the client's.
type uploaded struct {
	array.RecordReader
	r *http.Request
}

func (u uploaded) Err() error {
	if err := u.RecordReader.Err(); err != nil {
		return uploadError(u.r, err)
	}
	return nil
}

// uploadParameters are the query parameters of an upload; those of a table to create are its properties.
var uploadParameters = []string{
	"mode", "create", "format", "delimiter", "header", "null",
	"sorted_by", "index_columns", "partitioned_by", "primary_key", "spill_compression", "async_processing", "comment",
}

// uploadData loads a file into a table in one commit.
func (h *Handler) uploadData(w http.ResponseWriter, r *http.Request) error {
	values, err := known(r, uploadParameters...)
	if err != nil {
		return err
	}
	name, err := tableName(r)
	if err != nil {
		return err
	}
	request, wanted, err := h.uploadRequest(values, name)
	if err != nil {
		return err
	}
	request.IdempotencyKey = r.Header.Get("Idempotency-Key")
	rdr, err := h.open(w, r, values, wanted)
	if err != nil {
		return err
	}
	defer rdr.Release()
	if request.Create != nil {
		for _, f := range rdr.Schema().Fields() {
			request.Create.Columns = append(request.Create.Columns, connector.ColumnSpec{Name: f.Name, Type: f.Type, NotNull: !f.Nullable})
		}
	}
	in := uploaded{rdr, r}
	result, err := h.o.Connector.Append(r.Context(), request, in)
	if readErr := in.Err(); readErr != nil && err != nil {
		return readErr
	}
	if err != nil {
		return err
	}
	return h.ok(w, map[string]any{"rows": result.Rows, "snapshot": result.Version})
}

// uploadRequest reads what to do: mode append (default), overwrite, create (the table must not exist) or replace (swap it for the
// uploaded one), and create=true to make a missing table. wanted is the schema of an existing table that stays.
func (h *Handler) uploadRequest(values url.Values, name connector.TableName) (r connector.WriteRequest, wanted *arrow.Schema, err error) {
	create, err := flag(values, "create")
	if err != nil {
		return r, nil, err
	}
	r.Table = name
	spec := &connector.TableSpec{Name: name}
	for _, property := range uploadParameters[6:] {
		if values.Has(property) {
			if err := wire.SetProperty(spec, property, values.Get(property)); err != nil {
				return r, nil, err
			}
		}
	}
	snapshot := h.o.Connector.Snapshot()
	defer snapshot.Close()
	t, missing := snapshot.Table(name)
	if missing != nil && connector.CodeOf(missing) != connector.CodeTableNotFound {
		return r, nil, missing
	}
	switch mode := values.Get("mode"); mode {
	case "", "append":
		r.Mode = connector.WriteAppend
	case "overwrite":
		r.Mode = connector.WriteOverwrite
	case "create":
		r.Create = spec
		return r, nil, nil
	case "replace":
		r.Create, r.CreateOptions.OrReplace = spec, true
		return r, nil, nil
	default:
		return r, nil, wire.Invalid("the mode %q is not append, overwrite, create or replace", mode)
	}
	switch {
	case missing == nil:
		return r, t.ArrowSchema(), nil
	case create:
		r.Create = spec
		return r, nil, nil
	default:
		return r, nil, missing
	}
}

// copyRows feeds a reader into a sink and finishes it, or aborts it.
func copyRows(ctx context.Context, sink *connector.PageSink, rdr array.RecordReader) (connector.Fragment, error) {
	for rdr.Next() {
		if err := sink.Append(ctx, rdr.RecordBatch()); err != nil {
			return connector.Fragment{}, errors.Join(err, sink.Abort(context.WithoutCancel(ctx)))
		}
	}
	if err := rdr.Err(); err != nil {
		return connector.Fragment{}, errors.Join(err, sink.Abort(context.WithoutCancel(ctx)))
	}
	return sink.Finish(ctx)
}
