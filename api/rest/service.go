package rest

import (
	"net/http"

	"github.com/memconn/memconn/api/drain"
)

func (h *Handler) live(w http.ResponseWriter, _ *http.Request) error {
	return h.ok(w, map[string]string{"status": "live"})
}

// ready says whether new work is taken.
func (h *Handler) ready(w http.ResponseWriter, _ *http.Request) error {
	if h.o.Gate.Closed() {
		return drain.ErrClosed
	}
	return h.ok(w, map[string]string{"status": "ready"})
}

func (h *Handler) metrics(w http.ResponseWriter, r *http.Request) error {
	h.o.Metrics.Handler().ServeHTTP(w, r)
	return nil
}

func (h *Handler) openapi(w http.ResponseWriter, _ *http.Request) error {
	w.Header().Set("Content-Type", "application/yaml")
	_, err := w.Write(openAPI)
	return err
}

func (h *Handler) config(w http.ResponseWriter, _ *http.Request) error { return h.ok(w, h.o.Config()) }

// Endpoints lists the routes as "METHOD path".
func Endpoints() []string {
	list := make([]string, len(routes))
	for i, r := range routes {
		list[i] = r.method + " " + r.path
	}
	return list
}
