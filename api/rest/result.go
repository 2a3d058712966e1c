package rest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/memconn/memconn/api/cell"
	"github.com/memconn/memconn/api/fileformat"
	"github.com/memconn/memconn/api/wire"
	"github.com/memconn/memconn/connector"
)

// formatJSON is the one result format that is not a file format.
const formatJSON = fileformat.Unknown

// stallTimeout is how long one write to a client, or one read from it, may take: a client that takes nothing would hold its
// snapshot forever.
const stallTimeout = 2 * time.Minute

// holdBytes of a response are held back before its status goes out, so that a statement that fails early still gets a proper
// error.
const holdBytes = 256 << 10

// accepted picks the format that the client likes best among those offered; the first offered wins ties and wildcards.
// The query parameter format overrides the header.
func accepted(r *http.Request, override string, offered ...fileformat.Format) (fileformat.Format, error) {
	if override != "" {
		if strings.EqualFold(override, "json") {
			return pick(formatJSON, offered)
		}
		f, err := fileformat.ParseFormat(override)
		if err != nil && slices.Contains(offered, formatJSON) {
			return 0, wire.Invalid("%s, or json", err)
		}
		if err != nil {
			return 0, wire.Invalid("%s", err)
		}
		return pick(f, offered)
	}
	header := strings.Join(r.Header.Values("Accept"), ",")
	if strings.TrimSpace(header) == "" {
		return offered[0], nil
	}
	best, bestQ := fileformat.Format(0), -1.0
	for _, item := range strings.Split(header, ",") {
		mediaType, params, err := mime.ParseMediaType(strings.TrimSpace(item))
		if err != nil {
			continue
		}
		q := 1.0
		if text, ok := params["q"]; ok {
			if q, err = strconv.ParseFloat(text, 64); err != nil {
				continue
			}
		}
		for _, f := range offered {
			if q > bestQ && q > 0 && matches(mediaType, contentType(f)) {
				best, bestQ = f, q
				break
			}
		}
	}
	if bestQ < 0 {
		return 0, notAcceptable(offered)
	}
	return best, nil
}

func matches(wanted, have string) bool {
	if wanted == "*/*" || wanted == have {
		return true
	}
	kind, all := strings.CutSuffix(wanted, "/*")
	return all && strings.HasPrefix(have, kind+"/")
}

func pick(f fileformat.Format, offered []fileformat.Format) (fileformat.Format, error) {
	for _, o := range offered {
		if o == f {
			return f, nil
		}
	}
	return 0, notAcceptable(offered)
}

func notAcceptable(offered []fileformat.Format) error {
	types := make([]string, len(offered))
	for i, f := range offered {
		types[i] = contentType(f)
	}
	return connector.Errorf(wire.CodeNotAcceptable, "none of the accepted types can be had, there are: %s", strings.Join(types, ", "))
}

func contentType(f fileformat.Format) string {
	if f == formatJSON {
		return "application/json"
	}
	return f.ContentType()
}

// response writes a result body. It holds the beginning back, counts bytes against the limit and renews the write
// deadline with every write.
type response struct {
	w       http.ResponseWriter
	control *http.ResponseController
	buf     []byte
	out     bool // the status went out
	sent    int64
	limit   int64
	err     error
}

func (h *Handler) newResponse(w http.ResponseWriter) *response {
	return &response{w: w, control: http.NewResponseController(w), limit: h.o.MaxResultBytes}
}

func (b *response) Write(p []byte) (int, error) {
	if b.err != nil {
		return 0, b.err
	}
	if b.sent += int64(len(p)); b.limit > 0 && b.sent > b.limit {
		b.err = connector.Errorf(connector.CodeLimitExceeded, "the result is larger than the limit of %d bytes", b.limit)
		return 0, b.err
	}
	if !b.out && len(b.buf)+len(p) <= holdBytes {
		b.buf = append(b.buf, p...)
		return len(p), nil
	}
	if err := b.flush(); err != nil {
		return 0, err
	}
	return b.put(p)
}

func (b *response) put(p []byte) (int, error) {
	// A server that can't set deadlines (a test's recorder) does without.
	_ = b.control.SetWriteDeadline(time.Now().Add(stallTimeout))
	n, err := b.w.Write(p)
	if err != nil {
		b.err = fmt.Errorf("write response: %w", err)
	}
	return n, b.err
}

// flush sends the status and what was held back.
func (b *response) flush() error {
	if b.out || b.err != nil {
		return b.err
	}
	b.out = true
	if len(b.buf) > 0 {
		_, _ = b.put(b.buf)
		b.buf = nil
	}
	return b.err
}

// rows is a result to send: next gives io.EOF at the end.
type rows struct {
	schema *arrow.Schema
	next   func(context.Context) (arrow.RecordBatch, error)
}

// sendRows writes the rows as a file of the format and gives their number.
func (h *Handler) sendRows(w http.ResponseWriter, r *http.Request, format fileformat.Format, in rows) error {
	w.Header().Set("Content-Type", format.ContentType())
	w.Header().Set("Trailer", "X-Memconn-Rows")
	out := h.newResponse(w)
	fw, err := fileformat.NewWriter(format, out, in.schema, fileformat.WriteOptions{})
	if err != nil {
		return connector.Errorf(connector.CodeTypeNotSupported, "%s", err)
	}
	count := int64(0)
	for {
		batch, err := in.next(r.Context())
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		count += batch.NumRows()
		err = fw.Write(batch)
		batch.Release()
		if err != nil {
			return err
		}
	}
	if err := fw.Close(); err != nil {
		return err
	}
	if err := out.flush(); err != nil {
		return err
	}
	w.Header().Set("X-Memconn-Rows", strconv.FormatInt(count, 10))
	return nil
}

// columnJSON describes one column of a result.
type columnJSON struct {
	Name      string `json:"name"`
	Type      string `json:"type"`      // SQL's name
	ArrowType string `json:"arrowType"` // Arrow's name
}

func columnsJSON(schema *arrow.Schema) []columnJSON {
	columns := make([]columnJSON, schema.NumFields())
	for i, f := range schema.Fields() {
		columns[i] = columnJSON{f.Name, wire.SQLType(f.Type), wire.ArrowType(f.Type)}
	}
	return columns
}

// sendJSONRows writes {"columns", "rows", "rowCount", ...tail}; tail is asked for when all rows are out.
func (h *Handler) sendJSONRows(w http.ResponseWriter, r *http.Request, in rows, tail func() map[string]any) error {
	w.Header().Set("Content-Type", "application/json")
	out := h.newResponse(w)
	columns, err := json.Marshal(columnsJSON(in.schema))
	if err != nil {
		return fmt.Errorf("encode columns: %w", err)
	}
	buf := append(append([]byte(`{"columns":`), columns...), `,"rows":[`...)
	count := int64(0)
	for {
		batch, err := in.next(r.Context())
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		for i := range int(batch.NumRows()) {
			if count > 0 {
				buf = append(buf, ',')
			}
			buf = appendRow(buf, batch, i)
			count++
			if len(buf) > 32<<10 {
				if _, err := out.Write(buf); err != nil {
					batch.Release()
					return err
				}
				buf = buf[:0]
			}
		}
		batch.Release()
	}
	rest := tail()
	rest["rowCount"] = count
	end, err := json.Marshal(rest)
	if err != nil {
		return fmt.Errorf("encode the end of the result: %w", err)
	}
	// The end is an object too; its members continue the one that was begun.
	buf = append(append(append(buf, `],`...), end[1:]...), '\n')
	if _, err := out.Write(buf); err != nil {
		return err
	}
	return out.flush()
}

func appendRow(buf []byte, batch arrow.RecordBatch, i int) []byte {
	buf = append(buf, '[')
	for c, col := range batch.Columns() {
		if c > 0 {
			buf = append(buf, ',')
		}
		buf = cell.AppendJSON(buf, col, i)
	}
	return append(buf, ']')
}
