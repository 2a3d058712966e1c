package peer

import (
	"fmt"
	"unsafe"

	bindings "github.com/duckdb/duckdb-go-bindings"
)

// Drain runs the statement, reads the result to its end and gives the number of
// rows.
func (s *Stmt) Drain() (int64, error) {
	rows := int64(0)
	err := s.run(nil, func(_ bindings.DataChunk, n int) { rows += int64(n) })
	return rows, err
}

// Rows runs a statement all of whose columns are VARCHAR and gives its rows in
// order; NULL is "NULL".
func (s *Stmt) Rows() ([][]string, error) {
	columns := int(bindings.PreparedStatementColumnCount(s.handle))
	for i := range columns {
		if kind := bindings.PreparedStatementColumnType(s.handle, bindings.IdxT(i)); kind != bindings.TypeVarchar {
			return nil, fmt.Errorf("duckdb, %s: column %d is no text", s.text, i+1)
		}
	}
	var rows [][]string
	err := s.run(nil, func(chunk bindings.DataChunk, n int) {
		first := len(rows)
		for range n {
			rows = append(rows, make([]string, columns))
		}
		for c := range columns {
			v := bindings.DataChunkGetVector(chunk, bindings.IdxT(c))
			data := unsafe.Slice((*bindings.StringT)(bindings.VectorGetData(v)), n)
			valid := (*uint64)(bindings.VectorGetValidity(v))
			for i := range n {
				if valid != nil && unsafe.Slice(valid, (n+63)/64)[i/64]>>(i%64)&1 == 0 {
					rows[first+i][c] = "NULL"
					continue
				}
				rows[first+i][c] = bindings.StringTData(&data[i])
			}
		}
	})
	return rows, err
}
