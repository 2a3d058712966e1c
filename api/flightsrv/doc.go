// Package flightsrv serves Arrow Flight and Flight SQL.
//
// Service is the outer dispatcher: it reads a descriptor or ticket and decides. PATH descriptors and commands that begin
// with a brace (a scan request in JSON) or are SQL text are plain Flight and handled here; commands that are a
// google.protobuf.Any are Flight SQL. arrow-go's Flight SQL server routes those to sqlServer; whatever streams rows is
// streamed here, because the stock DoGet can neither cut batches nor stop a query whose client has gone.
//
// Tickets are random names of planned results (package tickets), wrapped as Flight SQL's TicketStatementQuery. GetFlightInfo
// only plans; DoGet runs. A statement that changes something runs once, however often its ticket is presented. FlightInfo
// carries one endpoint without a location: the client reads over the connection it has.
//
// A client's schema and properties belong to its connection, or to its cookie when it sends one; statements that change them
// (USE, SET SESSION) and the Flight SQL session actions work on the same state.
//
// Invariants:
//
//	INV-A1 No client message ends the process: handlers recover, a DoPut without a descriptor is refused before arrow-go
//	       sees it, incoming batches are validated in full, flatbuffers are only touched under recover.
//	INV-A2 Schema of FlightInfo = schema of DoGet = schema of every batch.
//	INV-A3 Messages stay below maxMessageBytes as long as they hold more than one row.
//	INV-A4 Everything a client can leave behind (tickets, prepared statements, sessions) is bounded in number and time.
//	INV-A5 Errors are gRPC statuses by the code table of package wire.
//
// Transactions and savepoints are not served: SqlInfo says so.
package flightsrv
