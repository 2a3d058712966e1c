package duck

/*
#include <stdint.h>
#include <stdlib.h>

void memconnDuckBind(void *info);
void memconnDuckInit(void *info);
void memconnDuckLocalInit(void *info);
void memconnDuckScan(void *info, void *output);
void memconnDuckDelete(void *data);

typedef void (*memconn_duck_info_t)(void *);
typedef void (*memconn_duck_scan_t)(void *, void *);
*/
import "C"

import (
	"errors"
	"fmt"
	"io"
	"runtime/cgo"
	"runtime/debug"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
	bindings "github.com/duckdb/duckdb-go-bindings"
)

// ScanFunction is the name of the table function that reads a Source: memconn_scan('<key>').
const ScanFunction = "memconn_scan"

// DuckDB's marks for columns that are not of the table: the row id, and "no column at all" of a mere count.
const firstVirtualColumn = uint64(1) << 63

// deleter is what the pointers handed to DuckDB stand for; DuckDB calls delete exactly once.
type deleter interface{ delete() }

// newPointer makes C memory that holds a handle of v. A Go pointer must not be kept by C, and a bare handle is a small
// number that Go's stack copier would reject as a pointer.
func newPointer(v deleter) unsafe.Pointer {
	p := C.malloc(C.size_t(unsafe.Sizeof(uintptr(0))))
	*(*uintptr)(p) = uintptr(cgo.NewHandle(v))
	return p
}

// atPointer gives back what newPointer stored.
func atPointer[T deleter](p unsafe.Pointer) T {
	return cgo.Handle(*(*uintptr)(p)).Value().(T)
}

// registration is the table function's tie to its database.
type registration struct{ in *instance }

func (*registration) delete() {}

// bound is one memconn_scan call of a plan.
type bound struct {
	raw     *rawConn
	threads int
	key     string // of its source among those of the statement that runs
	schema  *arrow.Schema
}

func (*bound) delete() {}

// scan is one scan of an execution, shared by its threads.
type scan struct {
	run     *execution
	stream  Stream
	columns []scanColumn
}

// scanColumn says which vector of DuckDB's chunk is filled from which column of the batches, and how.
type scanColumn struct {
	vector bindings.IdxT
	name   string
	fill   filler
	bytes  bool // of variable width
}

func (s *scan) delete() {
	defer s.run.scanClosed()
	s.stream.Close()
}

// cursor is one thread's place in the scan: rows [next, batch.NumRows()) of batch are not yet handed over.
type cursor struct {
	batch arrow.RecordBatch
	next  int
}

func (c *cursor) delete() { c.drop() }

func (c *cursor) drop() {
	if c.batch != nil {
		c.batch.Release()
		c.batch = nil
	}
}

// registerScan makes memconn_scan known to the database.
func registerScan(handle bindings.Connection, in *instance) error {
	f := bindings.CreateTableFunction()
	defer bindings.DestroyTableFunction(&f)
	bindings.TableFunctionSetName(f, ScanFunction)
	varchar := bindings.CreateLogicalType(bindings.TypeVarchar)
	bindings.TableFunctionAddParameter(f, varchar)
	bindings.DestroyLogicalType(&varchar)
	bindings.TableFunctionSupportsProjectionPushdown(f, true)
	remove := unsafe.Pointer(C.memconn_duck_info_t(C.memconnDuckDelete))
	bindings.TableFunctionSetExtraInfo(f, newPointer(&registration{in: in}), remove)
	bindings.TableFunctionSetBind(f, unsafe.Pointer(C.memconn_duck_info_t(C.memconnDuckBind)))
	bindings.TableFunctionSetInit(f, unsafe.Pointer(C.memconn_duck_info_t(C.memconnDuckInit)))
	bindings.TableFunctionSetLocalInit(f, unsafe.Pointer(C.memconn_duck_info_t(C.memconnDuckLocalInit)))
	bindings.TableFunctionSetFunction(f, unsafe.Pointer(C.memconn_duck_scan_t(C.memconnDuckScan)))
	if bindings.RegisterTableFunction(handle, f) == bindings.StateError {
		return fmt.Errorf("register %s: duckdb refused", ScanFunction)
	}
	return nil
}

// guarded runs a callback's body. A panic must not cross C, so it becomes an error of the query.
func guarded(body func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &PanicError{Value: p, Stack: string(debug.Stack())}
		}
	}()
	return body()
}

//export memconnDuckBind
func memconnDuckBind(p unsafe.Pointer) {
	info := bindings.BindInfo{Ptr: p}
	if err := guarded(func() error { return bind(info) }); err != nil {
		bindings.BindSetError(info, err.Error())
	}
}

func bind(info bindings.BindInfo) error {
	in := atPointer[*registration](bindings.BindGetExtraInfo(info)).in
	value := bindings.BindGetParameter(info, 0)
	defer bindings.DestroyValue(&value)
	if value.Ptr == nil || bindings.IsNullValue(value) { // reading NULL as text would end the process
		return fmt.Errorf("%s: the source's key is NULL", ScanFunction)
	}
	key := bindings.GetVarchar(value)

	var client bindings.ClientContext
	bindings.TableFunctionGetClientContext(info, &client)
	id := uint64(bindings.ClientContextGetConnectionId(client))
	bindings.DestroyClientContext(&client)
	raw := in.connByID(id)
	if raw == nil {
		return fmt.Errorf("BUG: %s: connection %d is unknown", ScanFunction, id)
	}
	source := raw.source(key)
	if source == nil {
		return fmt.Errorf("%s: the statement has no source %q", ScanFunction, key)
	}
	schema := source.Schema()
	if schema.NumFields() == 0 {
		return fmt.Errorf("%s: the source %q has no columns", ScanFunction, key)
	}
	for _, field := range schema.Fields() {
		logical, err := toLogicalType(field.Type)
		if err != nil {
			return inColumn(field.Name, err)
		}
		bindings.BindAddResultColumn(info, field.Name, logical)
		bindings.DestroyLogicalType(&logical)
	}
	if n := source.Cardinality(); n >= 0 {
		bindings.BindSetCardinality(info, bindings.IdxT(n), false)
	}
	b := &bound{raw: raw, threads: in.opts.Threads, key: key, schema: schema}
	bindings.BindSetBindData(info, newPointer(b), unsafe.Pointer(C.memconn_duck_info_t(C.memconnDuckDelete)))
	return nil
}

//export memconnDuckInit
func memconnDuckInit(p unsafe.Pointer) {
	info := bindings.InitInfo{Ptr: p}
	b := atPointer[*bound](bindings.InitGetBindData(info))
	run := b.raw.running()
	if run == nil {
		bindings.InitSetError(info, "BUG: "+ScanFunction+": no statement runs")
		return
	}
	if err := guarded(func() error { return initScan(info, b, run) }); err != nil {
		bindings.InitSetError(info, run.fail(err).Error())
	}
}

func initScan(info bindings.InitInfo, b *bound, run *execution) error {
	s := &scan{run: run}
	var wanted []int
	for i := range bindings.InitGetColumnCount(info) {
		index := uint64(bindings.InitGetColumnIndex(info, i))
		if index >= firstVirtualColumn {
			continue
		}
		field := b.schema.Field(int(index))
		fill, err := fillerOf(field.Type)
		if err != nil {
			return inColumn(field.Name, err)
		}
		wanted = append(wanted, int(index))
		s.columns = append(s.columns, scanColumn{vector: i, name: field.Name, fill: fill, bytes: isVariable(field.Type)})
	}
	source := run.sources[b.key] // not the one it was planned with: a kept statement runs over new ones
	if source == nil {
		return fmt.Errorf("BUG: %s: the statement that runs has no source %q", ScanFunction, b.key)
	}
	stream, err := source.Open(run.ctx, wanted)
	if err != nil {
		return err
	}
	s.stream = stream
	run.scanOpened()
	bindings.InitSetMaxThreads(info, bindings.IdxT(b.threads))
	bindings.InitSetInitData(info, newPointer(s), unsafe.Pointer(C.memconn_duck_info_t(C.memconnDuckDelete)))
	return nil
}

//export memconnDuckLocalInit
func memconnDuckLocalInit(p unsafe.Pointer) {
	info := bindings.InitInfo{Ptr: p}
	bindings.InitSetInitData(info, newPointer(&cursor{}), unsafe.Pointer(C.memconn_duck_info_t(C.memconnDuckDelete)))
}

//export memconnDuckScan
func memconnDuckScan(p, output unsafe.Pointer) {
	info := bindings.FunctionInfo{Ptr: p}
	chunk := bindings.DataChunk{Ptr: output}
	s := atPointer[*scan](bindings.FunctionGetInitData(info))
	c := atPointer[*cursor](bindings.FunctionGetLocalInitData(info))
	n := 0
	err := guarded(func() (err error) {
		n, err = s.fill(c, chunk)
		return err
	})
	if err != nil {
		c.drop()
		bindings.DataChunkSetSize(chunk, 0)
		bindings.FunctionSetError(info, s.run.fail(err).Error())
		return
	}
	bindings.DataChunkSetSize(chunk, bindings.IdxT(n))
}

// fill copies the next rows into DuckDB's chunk; 0 rows are the end of this thread's part of the scan.
func (s *scan) fill(c *cursor, chunk bindings.DataChunk) (int, error) {
	for c.batch == nil || int64(c.next) >= c.batch.NumRows() {
		c.drop()
		if s.run.ctx.Err() != nil {
			return 0, s.run.reason()
		}
		batch, err := s.stream.Next(s.run.ctx)
		if errors.Is(err, io.EOF) {
			return 0, nil
		}
		if err != nil {
			return 0, err
		}
		if found := int(batch.NumCols()); found != len(s.columns) {
			batch.Release()
			return 0, fmt.Errorf("BUG: the source gave %d columns, %d were asked for", found, len(s.columns))
		}
		c.batch, c.next = batch, 0
	}
	n := min(int(c.batch.NumRows())-c.next, vectorSize)
	for i := range s.columns {
		if s.columns[i].bytes {
			n = rowsWithin(c.batch.Column(i), c.next, n, maxChunkBytes)
		}
	}
	s.run.rows.Add(int64(n))
	for i := range s.columns {
		column := &s.columns[i]
		vector := bindings.DataChunkGetVector(chunk, column.vector)
		if err := column.fill(vector, c.batch.Column(i), c.next, n); err != nil {
			return 0, inColumn(column.name, err)
		}
	}
	c.next += n
	if int64(c.next) >= c.batch.NumRows() {
		c.drop()
	}
	return n, nil
}

//export memconnDuckDelete
func memconnDuckDelete(p unsafe.Pointer) {
	handle := cgo.Handle(*(*uintptr)(p))
	d := handle.Value().(deleter)
	handle.Delete()
	C.free(p)
	// The owner is gone and no query is left that an error could go to.
	_ = guarded(func() error { d.delete(); return nil })
}
