// Package api assembles the server: HTTP (package rest) and Flight (package flightsrv) over one engine and one connector,
// their listeners, and the order in which they start and stop.
//
// Options say where to listen and what to bound. New checks them; Start binds and serves; Shutdown refuses new work,
// lets running work finish within the grace period, cancels the rest, and returns when nothing of the server is left.
//
// Invariants:
//
//	INV-S1 Without authentication the server listens on loopback addresses only, unless the mode "insecure" was asked for.
//	INV-S2 After Shutdown no goroutine, listener, ticket, prepared statement or session of the server is left.
//	INV-S3 Both interfaces share one gate: what drains one drains the other.
//
// It owns neither the engine nor the connector; their owner closes them after Shutdown.
package api
