package rest

import (
	"net/http"

	"github.com/memconn/memconn/api/wire"
	"github.com/memconn/memconn/connector"
)

func (h *Handler) beginWrite(w http.ResponseWriter, r *http.Request) error {
	var request wire.BeginWrite
	if err := h.body(w, r, &request); err != nil {
		return err
	}
	if key := r.Header.Get("Idempotency-Key"); key != "" {
		request.IdempotencyKey = key
	}
	wr, err := request.Request()
	if err != nil {
		return err
	}
	write, err := h.o.Connector.BeginWrite(r.Context(), wr)
	if err != nil {
		return err
	}
	h.sendJSON(w, http.StatusCreated, wire.WriteBegun{WriteID: write.ID(), ExpiresAt: write.ExpiresAt()})
	return nil
}

func (h *Handler) writeOf(r *http.Request) (*connector.Write, error) {
	id, err := parameter(r, "id")
	if err != nil {
		return nil, err
	}
	return h.o.Connector.FindWrite(id)
}

// putFragment stages one task's rows; only a commit that lists the fragment makes them visible.
func (h *Handler) putFragment(w http.ResponseWriter, r *http.Request) error {
	values, err := known(r, "format", "delimiter", "header", "null")
	if err != nil {
		return err
	}
	write, err := h.writeOf(r)
	if err != nil {
		return err
	}
	task, err := parameter(r, "task")
	if err != nil {
		return err
	}
	rdr, err := h.open(w, r, values, write.Schema())
	if err != nil {
		return err
	}
	defer rdr.Release()
	sink, err := write.NewSink(r.Context(), task)
	if err != nil {
		return err
	}
	fragment, err := copyRows(r.Context(), sink, uploaded{rdr, r})
	if err != nil {
		return err
	}
	return h.ok(w, fragment)
}

func (h *Handler) commitWrite(w http.ResponseWriter, r *http.Request) error {
	write, err := h.writeOf(r)
	if err != nil {
		return err
	}
	var request struct {
		Fragments []connector.Fragment `json:"fragments"`
	}
	if err := h.body(w, r, &request); err != nil {
		return err
	}
	result, err := write.Commit(r.Context(), request.Fragments...)
	if err != nil {
		return err
	}
	return h.ok(w, map[string]any{"rows": result.Rows, "snapshot": result.Version})
}

func (h *Handler) abortWrite(w http.ResponseWriter, r *http.Request) error {
	write, err := h.writeOf(r)
	if err != nil {
		return err
	}
	if err := h.noBody(w, r); err != nil {
		return err
	}
	if err := write.Abort(r.Context()); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}
