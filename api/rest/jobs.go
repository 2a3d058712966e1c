package rest

import (
	"net/http"
	"sort"
	"strconv"
	"strings"

	"github.com/memconn/memconn/api/wire"
	"github.com/memconn/memconn/connector"
)

func sortFold(names []string) {
	sort.Slice(names, func(i, j int) bool { return strings.ToLower(names[i]) < strings.ToLower(names[j]) })
}

// parseCount reads a number of rows.
func parseCount(name, text string) (int64, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		return 0, wire.Invalid("%s %q is not a number of rows", name, text)
	}
	return n, nil
}

func (h *Handler) listJobs(w http.ResponseWriter, _ *http.Request) error {
	jobs := h.o.Connector.Jobs()
	if jobs == nil {
		jobs = []connector.JobInfo{}
	}
	return h.ok(w, map[string]any{"jobs": jobs})
}

func (h *Handler) jobID(r *http.Request) (uint64, error) {
	text, err := parameter(r, "id")
	if err != nil {
		return 0, err
	}
	id, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0, connector.Errorf(connector.CodeJobNotFound, "there is no job %q: ids are numbers", text)
	}
	return id, nil
}

func (h *Handler) getJob(w http.ResponseWriter, r *http.Request) error {
	id, err := h.jobID(r)
	if err != nil {
		return err
	}
	for _, job := range h.o.Connector.Jobs() {
		if job.ID == id {
			return h.ok(w, job)
		}
	}
	return connector.Errorf(connector.CodeJobNotFound, "there is no job %d, or it ended long ago", id)
}

func (h *Handler) cancelJob(w http.ResponseWriter, r *http.Request) error {
	id, err := h.jobID(r)
	if err != nil {
		return err
	}
	if err := h.o.Connector.CancelJob(id); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// tableMemoryJSON is one table's share of memory and disk.
type tableMemoryJSON struct {
	Schema        string `json:"schema"`
	Name          string `json:"name"`
	Rows          int64  `json:"rows"`
	Parts         int    `json:"parts"`
	MemBytes      int64  `json:"memBytes"`
	ResidentBytes int64  `json:"residentBytes"`
	DiskBytes     int64  `json:"diskBytes"`
	IndexBytes    int64  `json:"indexBytes"`
}

func (h *Handler) memory(w http.ResponseWriter, _ *http.Request) error {
	info := h.o.Connector.Memory()
	u := info.Usage
	classes := map[string]int64{}
	for class, n := range u.ByClass {
		classes[class.String()] = n
	}
	tables := []tableMemoryJSON{}
	for _, t := range info.Tables {
		tables = append(tables, tableMemoryJSON{t.Name.Schema, t.Name.Table, t.Rows, t.Parts, t.MemBytes, t.ResidentBytes, t.DiskBytes, t.IndexBytes})
	}
	return h.ok(w, map[string]any{
		"budgetBytes": u.Budget, "usedBytes": u.Used, "engineBytes": info.EngineBytes, "residentBytes": u.Resident,
		"pinnedBytes": u.Pinned, "unspilledBytes": u.Unspilled, "reservedBytes": u.Reserved, "byClass": classes,
		"pageLoads": u.Loads, "pageLoadedBytes": u.LoadedBytes, "pageEvictions": u.Evictions, "pageEvictedBytes": u.EvictedBytes,
		"keptBytes": u.Kept, "returnedBytes": u.ReturnedBytes,
		"tables": tables, "openSnapshots": info.Snapshots, "stagedWrites": info.StagedWrites,
		"ingestedBytes": info.IngestedBytes, "jobBytes": info.JobBytes, "writeAmplification": info.WriteAmplification(),
		"disk": map[string]int64{
			"partFiles": int64(info.Disk.PartFiles), "partBytes": info.Disk.PartBytes, "metaBytes": info.Disk.MetaBytes,
			"tmpBytes": info.Disk.TmpBytes, "totalBytes": info.Disk.TotalBytes, "availableBytes": info.Disk.AvailableBytes,
		},
	})
}
