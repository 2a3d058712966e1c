// Package fileformat reads and writes tables as files: Arrow IPC stream and file, Parquet, CSV and newline-delimited
// JSON (NDJSON). Open turns bytes into validated record batches; NewWriter turns record batches into bytes.
//
// CSV is RFC 4180 with a header line unless told otherwise. An unquoted empty field is NULL; a quoted empty field is the
// empty text (NULL in a column of another type). Lines may end in LF or CRLF; a byte order mark is skipped; empty lines are
// skipped, except in a file of one column, where each is a NULL. NDJSON is one object a line; a missing key is NULL.
//
// When no schema is given, the types of CSV and NDJSON columns are inferred over the whole input, so a value in the last
// line counts as much as one in the first: boolean; int64; double; date; timestamp (microseconds, or nanoseconds when a fraction
// needs them; with zone UTC when every value names a zone); else text. An integer beyond int64 makes its column text, because a
// double would round it. A column without any value is text. Nested JSON values become their JSON text.
//
// Invariants:
//
//	INV-F1 Input is hostile: every batch that leaves a reader passed array.ValidateFull and holds valid UTF-8 in text
//	       columns; decoder panics become errors; one message, line or allocation never exceeds the stated limits.
//	INV-F2 An input that ends early is an error, never a short table: a stream needs its end marker, a file its footer,
//	       a quoted field its closing quote.
//	INV-F3 Errors say where: CSV and NDJSON name the row (1 = first data row), its line, the column and the value.
//	INV-F4 A reader owns its temporary file and removes it with the last Release.
//
// It does not decide what a table accepts: types leave as the format holds them, and the connector's sink casts them.
package fileformat
