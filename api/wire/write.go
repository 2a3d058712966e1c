package wire

import (
	"time"

	"github.com/memconn/memconn/connector"
)

// BeginWrite is the JSON request that begins a staged write.
type BeginWrite struct {
	Schema         string `json:"schema"`
	Table          string `json:"table"`
	Mode           string `json:"mode"` // append (default) or overwrite
	IdempotencyKey string `json:"idempotencyKey"`
}

// Request gives the connector's request.
func (b BeginWrite) Request() (connector.WriteRequest, error) {
	r := connector.WriteRequest{Table: connector.TableName{Schema: b.Schema, Table: b.Table}, IdempotencyKey: b.IdempotencyKey}
	if b.Table == "" {
		return r, Invalid("the request names no table")
	}
	switch b.Mode {
	case "", "append":
		r.Mode = connector.WriteAppend
	case "overwrite":
		r.Mode = connector.WriteOverwrite
	default:
		return r, Invalid("the mode %q is neither append nor overwrite", b.Mode)
	}
	return r, nil
}

// WriteBegun is the JSON answer to BeginWrite.
type WriteBegun struct {
	WriteID   string    `json:"writeId"`
	ExpiresAt time.Time `json:"expiresAt"`
}
