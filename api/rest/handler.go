package rest

import (
	_ "embed"
	"log/slog"
	"net/http"

	"github.com/gorilla/mux"

	"github.com/memconn/memconn/api/drain"
	"github.com/memconn/memconn/api/metrics"
	"github.com/memconn/memconn/api/tickets"
	"github.com/memconn/memconn/connector"
	"github.com/memconn/memconn/sql"
)

//go:embed openapi.yaml
var openAPI []byte

// Options configure a Handler.
type Options struct {
	Engine    *sql.Engine
	Connector *connector.Connector
	Gate      *drain.Gate
	Tickets   *tickets.Registry
	Metrics   *metrics.Metrics
	// Config is the document of GET /v1/config.
	Config func() any
	// MaxJSONBytes bounds JSON bodies (default 16 MiB), MaxUploadBytes uploads (0 = no limit), MaxResultBytes results (0 = no limit).
	MaxJSONBytes, MaxUploadBytes, MaxResultBytes int64
	// TempDir takes uploads that must be read at random; empty is the system's.
	TempDir string
	// Authenticate may refuse a request or put an identity into its context; nil lets everybody in.
	Authenticate func(*http.Request) (*http.Request, error)
	Log          *slog.Logger
}

// Handler serves /v1 and /metrics.
type Handler struct {
	o      Options
	router *mux.Router
}

// route is one entry of the route table. Open routes answer while the server drains and need no authentication.
type route struct {
	method, path string
	open         bool
	serve        func(*Handler, http.ResponseWriter, *http.Request) error
}

const tablePath = "/v1/schemas/{schema}/tables/{table}"

// routes is the whole surface; a test compares it with openapi.yaml.
var routes = []route{
	{"GET", "/v1/health/live", true, (*Handler).live},
	{"GET", "/v1/health/ready", true, (*Handler).ready},
	{"GET", "/metrics", true, (*Handler).metrics},
	{"GET", "/v1/openapi.yaml", true, (*Handler).openapi},
	{"GET", "/v1/config", false, plain((*Handler).config)},
	{"POST", "/v1/query", false, (*Handler).query},
	{"GET", "/v1/queries", false, plain((*Handler).listQueries)},
	{"DELETE", "/v1/queries/{id}", false, plain((*Handler).cancelQuery)},
	{"GET", "/v1/schemas", false, (*Handler).listSchemas},
	{"POST", "/v1/schemas", false, plain((*Handler).createSchema)},
	{"DELETE", "/v1/schemas/{schema}", false, (*Handler).dropSchema},
	{"GET", "/v1/schemas/{schema}/columns", false, plain((*Handler).listColumns)},
	{"GET", "/v1/schemas/{schema}/tables", false, (*Handler).listTables},
	{"POST", "/v1/schemas/{schema}/tables", false, plain((*Handler).createTable)},
	{"GET", tablePath, false, plain((*Handler).getTable)},
	{"HEAD", tablePath, false, plain((*Handler).headTable)},
	{"PATCH", tablePath, false, plain((*Handler).changeTable)},
	{"DELETE", tablePath, false, (*Handler).dropTable},
	{"GET", tablePath + "/indexes", false, plain((*Handler).listIndexes)},
	{"POST", tablePath + "/indexes", false, plain((*Handler).createIndex)},
	{"DELETE", tablePath + "/indexes/{index}", false, plain((*Handler).dropIndex)},
	{"GET", tablePath + "/statistics", false, plain((*Handler).statistics)},
	{"POST", tablePath + "/statistics", false, plain((*Handler).statistics)},
	{"GET", tablePath + "/parts", false, plain((*Handler).listParts)},
	{"POST", tablePath + "/truncate", false, plain((*Handler).truncate)},
	{"POST", tablePath + "/process", false, plain((*Handler).process)},
	{"GET", tablePath + "/data", false, (*Handler).exportData},
	{"POST", tablePath + "/data", false, (*Handler).uploadData},
	{"POST", "/v1/writes", false, plain((*Handler).beginWrite)},
	{"PUT", "/v1/writes/{id}/fragments/{task}", false, (*Handler).putFragment},
	{"POST", "/v1/writes/{id}/commit", false, plain((*Handler).commitWrite)},
	{"POST", "/v1/writes/{id}/abort", false, plain((*Handler).abortWrite)},
	{"POST", "/v1/scans", false, plain((*Handler).beginScan)},
	{"GET", "/v1/scans/{id}/splits/{split}", false, (*Handler).readSplit},
	{"DELETE", "/v1/scans/{id}", false, plain((*Handler).endScan)},
	{"GET", "/v1/jobs", false, plain((*Handler).listJobs)},
	{"GET", "/v1/jobs/{id}", false, plain((*Handler).getJob)},
	{"DELETE", "/v1/jobs/{id}", false, plain((*Handler).cancelJob)},
	{"GET", "/v1/cubes", false, plain((*Handler).listCubes)},
	{"POST", "/v1/cubes", false, plain((*Handler).createCube)},
	{"GET", "/v1/cubes/{cube}", false, (*Handler).getCube},
	{"DELETE", "/v1/cubes/{cube}", false, (*Handler).dropCube},
	{"POST", "/v1/cubes/{cube}/insert", false, (*Handler).insertCube},
	{"POST", "/v1/cubes/{cube}/reload", false, (*Handler).reloadCube},
	{"GET", tablePath + "/cubes", false, plain((*Handler).listTableCubes)},
	{"GET", "/v1/memory", false, plain((*Handler).memory)},
}

// plain is a handler of a route that has no query parameters: those that come are refused before anything is done.
func plain(serve func(*Handler, http.ResponseWriter, *http.Request) error) func(*Handler, http.ResponseWriter, *http.Request) error {
	return func(h *Handler, w http.ResponseWriter, r *http.Request) error {
		if _, err := known(r); err != nil {
			return err
		}
		return serve(h, w, r)
	}
}

// New makes the handler.
func New(o Options) *Handler {
	if o.MaxJSONBytes <= 0 {
		o.MaxJSONBytes = 16 << 20
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	h := &Handler{o: o, router: mux.NewRouter().UseEncodedPath()}
	for _, r := range routes {
		h.router.Handle(r.path, h.wrap(r)).Methods(r.method)
	}
	h.router.NotFoundHandler = h.wrap(route{path: "none", open: true, serve: (*Handler).notFound})
	h.router.MethodNotAllowedHandler = h.wrap(route{path: "none", open: true, serve: (*Handler).methodNotAllowed})
	return h
}

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) { h.router.ServeHTTP(w, r) }
