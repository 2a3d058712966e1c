package fileformat

import (
	"fmt"
	"mime"
	"path/filepath"
	"strings"
)

// Format names a file format.
type Format uint8

// The formats. The zero value is none of them.
const (
	Unknown Format = iota
	ArrowStream
	ArrowFile
	Parquet
	CSV
	NDJSON
)

// formats lists what each format is called: its name, its media types (the first is what the server sends) and its file
// extensions.
var formats = [...]struct {
	name       string
	mediaTypes []string
	extensions []string
}{
	ArrowStream: {"arrow", []string{"application/vnd.apache.arrow.stream"}, []string{".arrows"}},
	ArrowFile:   {"arrow_file", []string{"application/vnd.apache.arrow.file"}, []string{".arrow", ".feather", ".ipc"}},
	Parquet:     {"parquet", []string{"application/vnd.apache.parquet", "application/x-parquet", "application/parquet"}, []string{".parquet", ".pq"}},
	CSV:         {"csv", []string{"text/csv", "application/csv"}, []string{".csv", ".tsv"}},
	NDJSON: {
		"ndjson",
		[]string{"application/x-ndjson", "application/ndjson", "application/jsonl", "application/x-jsonlines"},
		[]string{".ndjson", ".jsonl"},
	},
}

// All gives every format, in order of their numbers.
func All() []Format { return []Format{ArrowStream, ArrowFile, Parquet, CSV, NDJSON} }

// String gives the format's name, as ParseFormat reads it.
func (f Format) String() string {
	if int(f) >= len(formats) || f == Unknown {
		return "unknown"
	}
	return formats[f].name
}

// ContentType gives the media type of the format.
func (f Format) ContentType() string {
	if int(f) >= len(formats) || f == Unknown {
		return "application/octet-stream"
	}
	return formats[f].mediaTypes[0]
}

// ParseFormat reads a format's name, in any case. "arrow_stream" and "jsonl" are read too.
func ParseFormat(name string) (Format, error) {
	switch strings.ToLower(name) {
	case "arrow_stream":
		return ArrowStream, nil
	case "jsonl":
		return NDJSON, nil
	}
	for f := range formats {
		if formats[f].name != "" && strings.EqualFold(formats[f].name, name) {
			return Format(f), nil
		}
	}
	return Unknown, fmt.Errorf("unknown format %q, use arrow, arrow_file, parquet, csv or ndjson", name)
}

// FromContentType finds the format of a media type; parameters such as charset are ignored.
func FromContentType(contentType string) (Format, bool) {
	mediaType, _, err := mime.ParseMediaType(contentType)
	if err != nil {
		return Unknown, false
	}
	for f := range formats {
		for _, m := range formats[f].mediaTypes {
			if m == mediaType {
				return Format(f), true
			}
		}
	}
	return Unknown, false
}

// FromFileName finds the format by the file name's extension.
func FromFileName(name string) (Format, bool) {
	extension := strings.ToLower(filepath.Ext(name))
	for f := range formats {
		for _, e := range formats[f].extensions {
			if e == extension {
				return Format(f), true
			}
		}
	}
	return Unknown, false
}
