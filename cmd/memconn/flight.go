package main

import "github.com/apache/arrow-go/v18/arrow/flight"

// flightTicket wraps the bytes that an endpoint gave.
func flightTicket(raw []byte) *flight.Ticket { return &flight.Ticket{Ticket: raw} }
