package rest

import (
	"encoding/base64"
	"errors"
	"net/http"
	"time"

	"github.com/apache/arrow-go/v18/arrow/flight"
	"github.com/apache/arrow-go/v18/arrow/flight/flightsql"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/memconn/memconn/api/fileformat"
	"github.com/memconn/memconn/api/plan"
	"github.com/memconn/memconn/api/tickets"
	"github.com/memconn/memconn/api/wire"
	"github.com/memconn/memconn/connector"
)

// splitJSON is one part of a scan's result. The ticket reads the same rows by Flight.
type splitJSON struct {
	Ticket    string   `json:"ticket"` // base64 of the Flight ticket's bytes
	URL       string   `json:"url"`
	Locations []string `json:"locations"`
	Rows      int64    `json:"rows"` // upper bound
}

// scanJSON is the answer to POST /v1/scans.
type scanJSON struct {
	ScanID    string       `json:"scanId"`
	Snapshot  uint64       `json:"snapshot"`
	ExpiresAt time.Time    `json:"expiresAt"`
	Columns   []columnJSON `json:"columns"`
	Schema    string       `json:"schema"` // base64 of an Arrow IPC stream that holds the schema
	Splits    []splitJSON  `json:"splits"`
	Enforced  []string     `json:"enforced"`
	Hints     []string     `json:"hints"`
	Stats     statsJSON    `json:"stats"`
}

// statsJSON says how the scan will be answered.
type statsJSON struct {
	Cube string `json:"cube"` // the cube whose cells are read, "" for none
}

// beginScan plans a scan, or an aggregation, and pins its snapshot. The connector applies constraints exactly, so every constrained column is
// enforced.
func (h *Handler) beginScan(w http.ResponseWriter, r *http.Request) error {
	var request wire.ScanRequest
	if err := h.body(w, r, &request); err != nil {
		return err
	}
	if err := request.Check(); err != nil {
		return err
	}
	scan, err := plan.NewRead(r.Context(), h.o.Connector, request)
	if err != nil {
		return err
	}
	answer := scanJSON{Snapshot: scan.Version(), Columns: columnsJSON(scan.Schema()), Enforced: scan.Columns(), Hints: scan.Hints()}
	answer.Stats.Cube = scan.Cube()
	if answer.Enforced == nil {
		answer.Enforced = []string{}
	}
	answer.Schema = base64.StdEncoding.EncodeToString(flight.SerializeSchema(scan.Schema(), memory.DefaultAllocator))
	rowsUpTo := scan.EstimatedRows()
	id, expires, err := h.o.Tickets.Put(scan)
	if err != nil {
		return scanError(err)
	}
	ticket, err := flightsql.CreateStatementQueryTicket([]byte(id))
	if err != nil {
		return err
	}
	answer.ScanID, answer.ExpiresAt = id, expires
	answer.Splits = []splitJSON{{base64.StdEncoding.EncodeToString(ticket), "/v1/scans/" + id + "/splits/0", []string{}, rowsUpTo}}
	h.sendJSON(w, http.StatusCreated, answer)
	return nil
}

func scanError(err error) error {
	switch {
	case errors.Is(err, tickets.ErrUnknown):
		return connector.Errorf(wire.CodeScanNotFound, "the scan is unknown, ended or expired: begin it again")
	case errors.Is(err, tickets.ErrFull):
		return connector.Errorf(connector.CodeLimitExceeded, "too many scans are open")
	}
	return err
}

func (h *Handler) readSplit(w http.ResponseWriter, r *http.Request) (err error) {
	values, err := known(r, "format")
	if err != nil {
		return err
	}
	format, err := accepted(r, values.Get("format"), fileformat.ArrowStream)
	if err != nil {
		return err
	}
	id, err := parameter(r, "id")
	if err != nil {
		return err
	}
	if split, err := parameter(r, "split"); err != nil || split != "0" {
		return connector.Errorf(wire.CodeScanNotFound, "the scan has no split %q", split)
	}
	ctx, lease, err := h.o.Tickets.Acquire(r.Context(), id)
	if err != nil {
		return scanError(err)
	}
	defer func() { lease.Done(err == nil) }()
	in, err := lease.Source.Open(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	return h.sendRows(w, r.WithContext(ctx), format, rows{lease.Source.Schema(), in.Next})
}

func (h *Handler) endScan(w http.ResponseWriter, r *http.Request) error {
	id, err := parameter(r, "id")
	if err != nil {
		return err
	}
	if !h.o.Tickets.Cancel(id) {
		return scanError(tickets.ErrUnknown)
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}
