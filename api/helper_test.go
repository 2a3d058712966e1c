package api_test

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
)

var errEOF = io.EOF

func contains(text, part string) bool { return strings.Contains(text, part) }

func jsonBody(v any) io.Reader {
	b, err := json.Marshal(v)
	if err != nil {
		panic("BUG: " + err.Error())
	}
	return bytes.NewReader(b)
}
