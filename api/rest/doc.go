// Package rest serves the HTTP interface under /v1; openapi.yaml, which is served too, is its description.
//
// Handler is an http.Handler over an engine and a connector. Request bodies are JSON and read strictly, unknown keys are
// errors; results are JSON, an Arrow stream, CSV or NDJSON by the Accept header; values look as package cell says. Errors are
// the envelope of package wire with the request's id, which is also in the header X-Request-Id.
//
// Invariants:
//
//	INV-R1 A response that began with status 200 and can't be completed is cut (the connection is closed, an Arrow stream lacks
//	       its end marker), never finished as if it were whole.
//	INV-R2 A request whose client goes away is cancelled, and its statement with it.
//	INV-R3 Bodies are bounded; uploads are read as streams and take effect as one commit or not at all.
//	INV-R4 No request ends the process: handlers recover.
package rest
