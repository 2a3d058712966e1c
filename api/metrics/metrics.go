package metrics

import (
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"google.golang.org/grpc/codes"

	"github.com/memconn/memconn/connector"
)

// Metrics holds the counters of one server.
type Metrics struct {
	registry      *prometheus.Registry
	httpRequests  *prometheus.CounterVec
	httpSeconds   *prometheus.HistogramVec
	flightCalls   *prometheus.CounterVec
	flightSeconds *prometheus.HistogramVec
	statements    *prometheus.CounterVec
	rowsRead      prometheus.Counter
	rowsTotal     prometheus.Counter
	bytesLoaded   prometheus.Counter
}

// Sources are what gauges are read from when they are shown.
type Sources struct {
	Connector *connector.Connector
	Running   func() int // calls that run now
	Tickets   func() int // planned results that were not read yet
}

// New registers everything. build labels the constant memconn_build_info.
func New(s Sources, version, commit string) *Metrics {
	buckets := []float64{.0002, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60}
	m := &Metrics{
		registry: prometheus.NewRegistry(),
		httpRequests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "memconn_http_requests_total",
			Help: "HTTP requests by route, method and status.",
		}, []string{"route", "method", "status"}),
		httpSeconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "memconn_http_request_seconds",
			Help: "Time of HTTP requests to their last byte.", Buckets: buckets,
		}, []string{"route", "method"}),
		flightCalls: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "memconn_flight_calls_total",
			Help: "Flight calls by method and gRPC code.",
		}, []string{"method", "code"}),
		flightSeconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "memconn_flight_call_seconds",
			Help: "Time of Flight calls to their last message.", Buckets: buckets,
		}, []string{"method"}),
		statements: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "memconn_rest_statements_total",
			Help: "SQL statements that came over REST, by outcome code; OK is success.",
		}, []string{"code"}),
		rowsRead:    prometheus.NewCounter(prometheus.CounterOpts{Name: "memconn_rest_rows_read_total", Help: "Rows that REST statements read after pruning."}),
		rowsTotal:   prometheus.NewCounter(prometheus.CounterOpts{Name: "memconn_rest_rows_considered_total", Help: "Rows of the tables that REST statements named."}),
		bytesLoaded: prometheus.NewCounter(prometheus.CounterOpts{Name: "memconn_rest_bytes_loaded_total", Help: "Bytes that REST statements loaded from disk."}),
	}
	info := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "memconn_build_info", Help: "Always 1; the labels say what runs.",
		ConstLabels: prometheus.Labels{"version": version, "commit": commit},
	}, func() float64 { return 1 })
	m.registry.MustRegister(m.httpRequests, m.httpSeconds, m.flightCalls, m.flightSeconds, m.statements, m.rowsRead, m.rowsTotal,
		m.bytesLoaded, info, &memoryCollector{s}, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// Handler serves the metrics.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{Registry: m.registry})
}

// HTTP counts a request; route is the route's pattern, "none" when none matched.
func (m *Metrics) HTTP(route, method string, status int, took time.Duration) {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodDelete, http.MethodPatch, http.MethodOptions:
	default:
		method = "other"
	}
	m.httpRequests.WithLabelValues(route, method, strconv.Itoa(status)).Inc()
	m.httpSeconds.WithLabelValues(route, method).Observe(took.Seconds())
}

// Flight counts a Flight call.
func (m *Metrics) Flight(method string, code codes.Code, took time.Duration) {
	m.flightCalls.WithLabelValues(method, code.String()).Inc()
	m.flightSeconds.WithLabelValues(method).Observe(took.Seconds())
}

// Statement counts an SQL statement by its outcome: OK or an error code.
func (m *Metrics) Statement(code string, rowsRead, rowsTotal, bytesLoaded int64) {
	m.statements.WithLabelValues(code).Inc()
	m.rowsRead.Add(float64(rowsRead))
	m.rowsTotal.Add(float64(rowsTotal))
	m.bytesLoaded.Add(float64(bytesLoaded))
}

// memoryCollector reads the connector when Prometheus asks.
type memoryCollector struct{ s Sources }

var (
	descBudget    = prometheus.NewDesc("memconn_memory_budget_bytes", "The hard memory budget.", nil, nil)
	descUsed      = prometheus.NewDesc("memconn_memory_used_bytes", "Memory accounted against the budget.", nil, nil)
	descPinned    = prometheus.NewDesc("memconn_memory_pinned_bytes", "Page memory that readers hold.", nil, nil)
	descUnspilled = prometheus.NewDesc("memconn_memory_unspilled_bytes", "Page memory that is not on disk yet and can't be evicted.", nil, nil)
	descLoads     = prometheus.NewDesc("memconn_page_loads_total", "Pages loaded from disk.", nil, nil)
	descLoaded    = prometheus.NewDesc("memconn_page_loaded_bytes_total", "Bytes of pages loaded from disk.", nil, nil)
	descEvictions = prometheus.NewDesc("memconn_page_evictions_total", "Pages evicted from memory.", nil, nil)
	descEvicted   = prometheus.NewDesc("memconn_page_evicted_bytes_total", "Bytes of pages evicted from memory.", nil, nil)
	descReturned  = prometheus.NewDesc("memconn_memory_returned_bytes_total", "Bytes of freed memory that were given back to the system.", nil, nil)
	descKept      = prometheus.NewDesc("memconn_memory_kept_bytes", "Bytes of freed memory that are resident still, for reuse.", nil, nil)
	descTables    = prometheus.NewDesc("memconn_tables", "Tables in the newest version.", nil, nil)
	descRows      = prometheus.NewDesc("memconn_rows", "Rows in the newest version.", nil, nil)
	descParts     = prometheus.NewDesc("memconn_parts", "Parts in the newest version.", nil, nil)
	descCorrupt   = prometheus.NewDesc("memconn_corrupt_parts", "Parts that could not be opened or in which a reader met damage.", nil, nil)
	descSnapshots = prometheus.NewDesc("memconn_open_snapshots", "Open snapshots.", nil, nil)
	descWrites    = prometheus.NewDesc("memconn_staged_writes", "Staged writes that are neither committed nor aborted.", nil, nil)
	descIngested  = prometheus.NewDesc("memconn_ingested_bytes_total", "Bytes of part files and records that writes committed.", nil, nil)
	descRewritten = prometheus.NewDesc("memconn_job_written_bytes_total", "Bytes of part files that background jobs wrote: by ingested bytes, the write amplification.", nil, nil)
	descJobs      = prometheus.NewDesc("memconn_jobs", "Background jobs that are remembered, by state.", []string{"state"}, nil)
	descRunning   = prometheus.NewDesc("memconn_running_calls", "REST requests and Flight calls that run now.", nil, nil)
	descTickets   = prometheus.NewDesc("memconn_tickets", "Planned results that were not read yet.", nil, nil)
)

func (c *memoryCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		descBudget, descUsed, descPinned, descUnspilled, descLoads, descLoaded, descEvictions, descEvicted, descReturned, descKept,
		descTables, descRows, descParts, descCorrupt, descSnapshots, descWrites, descIngested, descRewritten, descJobs, descRunning, descTickets,
	} {
		ch <- d
	}
}

func (c *memoryCollector) Collect(ch chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	counter := func(d *prometheus.Desc, v float64) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, v)
	}
	info := c.s.Connector.Memory()
	u := info.Usage
	gauge(descBudget, float64(u.Budget))
	gauge(descUsed, float64(u.Used))
	gauge(descPinned, float64(u.Pinned))
	gauge(descUnspilled, float64(u.Unspilled))
	counter(descLoads, float64(u.Loads))
	counter(descLoaded, float64(u.LoadedBytes))
	counter(descEvictions, float64(u.Evictions))
	counter(descEvicted, float64(u.EvictedBytes))
	counter(descReturned, float64(u.ReturnedBytes))
	gauge(descKept, float64(u.Kept))
	var rows, parts, corrupt float64
	for _, t := range info.Tables {
		rows += float64(t.Rows)
		parts += float64(t.Parts)
		corrupt += float64(t.CorruptParts)
	}
	gauge(descTables, float64(len(info.Tables)))
	gauge(descRows, rows)
	gauge(descParts, parts)
	gauge(descCorrupt, corrupt)
	gauge(descSnapshots, float64(info.Snapshots))
	gauge(descWrites, float64(info.StagedWrites))
	counter(descIngested, float64(info.IngestedBytes))
	counter(descRewritten, float64(info.JobBytes))
	states := map[string]float64{"queued": 0, "running": 0, "done": 0, "failed": 0, "cancelled": 0}
	for _, j := range c.s.Connector.Jobs() {
		states[j.State]++
	}
	for state, n := range states {
		gauge(descJobs, n, state)
	}
	gauge(descRunning, float64(c.s.Running()))
	gauge(descTickets, float64(c.s.Tickets()))
}
