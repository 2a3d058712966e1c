package flightsrv

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow/flight"

	"github.com/memconn/memconn/api/wire"
	"github.com/memconn/memconn/connector"
)

// ownActions are the actions besides Flight SQL's; bodies and results are JSON.
var ownActions = []flight.ActionType{
	{Type: "list_schemas", Description: "one result a schema: {\"name\"}"},
	{Type: "list_tables", Description: "{\"schema\"?} -> one result a table: {\"schema\", \"name\", \"rows\"}"},
	{Type: "discovery", Description: "what GET /v1/config gives"},
	{Type: "begin_write", Description: "{\"schema\"?, \"table\", \"mode\"?} -> {\"writeId\", \"expiresAt\"}"},
	{Type: "commit_write", Description: "{\"writeId\", \"fragments\": [..]} -> {\"rows\", \"version\"}"},
	{Type: "abort_write", Description: "{\"writeId\"} -> {}"},
}

// sessionActions are Flight SQL's that arrow-go serves but does not list.
var sessionActions = []string{flight.SetSessionOptionsActionType, flight.GetSessionOptionsActionType, flight.CloseSessionActionType}

// ListActions lists Flight SQL's actions and our own.
func (s *Service) ListActions(e *flight.Empty, out flight.FlightService_ListActionsServer) error {
	if err := s.sql.ListActions(e, out); err != nil {
		return err
	}
	for _, name := range sessionActions {
		if err := out.Send(&flight.ActionType{Type: name}); err != nil {
			return err
		}
	}
	for i := range ownActions {
		a := &flight.ActionType{Type: ownActions[i].Type, Description: ownActions[i].Description}
		if err := out.Send(a); err != nil {
			return err
		}
	}
	return nil
}

// DoAction serves our own actions and hands Flight SQL's on.
func (s *Service) DoAction(a *flight.Action, out flight.FlightService_DoActionServer) error {
	send := func(v any) error {
		body, err := json.Marshal(v)
		if err != nil {
			return fmt.Errorf("encode the result: %w", err)
		}
		return out.Send(&flight.Result{Body: body})
	}
	switch a.GetType() {
	case "list_schemas":
		return s.listSchemas(send)
	case "list_tables":
		return s.listTables(a.Body, send)
	case "discovery":
		body, err := s.o.Discovery()
		if err != nil {
			return err
		}
		return out.Send(&flight.Result{Body: body})
	case "begin_write":
		return s.beginWrite(a.Body, out, send)
	case "commit_write":
		return s.commitWrite(a.Body, out, send)
	case "abort_write":
		return s.abortWrite(a.Body, out, send)
	default:
		return s.sql.DoAction(a, out)
	}
}

func (s *Service) listSchemas(send func(any) error) error {
	snapshot := s.o.Connector.Snapshot()
	defer snapshot.Close()
	for _, name := range snapshot.Schemas() {
		if err := send(struct {
			Name string `json:"name"`
		}{name}); err != nil {
			return err
		}
	}
	return nil
}

type tableEntry struct {
	Schema string `json:"schema"`
	Name   string `json:"name"`
	Rows   int64  `json:"rows"`
}

func (s *Service) listTables(body []byte, send func(any) error) error {
	var request struct {
		Schema string `json:"schema"`
	}
	if len(body) > 0 {
		if err := wire.DecodeStrict(bytes.NewReader(body), &request); err != nil {
			return err
		}
	}
	snapshot := s.o.Connector.Snapshot()
	defer snapshot.Close()
	schemas := snapshot.Schemas()
	if request.Schema != "" {
		if !snapshot.HasSchema(request.Schema) {
			return connector.Errorf(connector.CodeSchemaNotFound, "Schema %s not found", request.Schema)
		}
		schemas = []string{request.Schema}
	}
	for _, schema := range schemas {
		for _, t := range snapshot.Tables(schema) {
			if err := send(tableEntry{t.Name().Schema, t.Name().Table, t.Rows()}); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *Service) beginWrite(body []byte, out flight.FlightService_DoActionServer, send func(any) error) error {
	var request wire.BeginWrite
	if err := wire.DecodeStrict(bytes.NewReader(body), &request); err != nil {
		return err
	}
	if request.Schema == "" {
		request.Schema = s.stateOf(out.Context()).Schema()
	}
	r, err := request.Request()
	if err != nil {
		return err
	}
	write, err := s.o.Connector.BeginWrite(out.Context(), r)
	if err != nil {
		return err
	}
	return send(wire.WriteBegun{WriteID: write.ID(), ExpiresAt: write.ExpiresAt()})
}

func (s *Service) commitWrite(body []byte, out flight.FlightService_DoActionServer, send func(any) error) error {
	var request struct {
		WriteID   string               `json:"writeId"`
		Fragments []connector.Fragment `json:"fragments"`
	}
	if err := wire.DecodeStrict(bytes.NewReader(body), &request); err != nil {
		return err
	}
	write, err := s.o.Connector.FindWrite(request.WriteID)
	if err != nil {
		return err
	}
	result, err := write.Commit(out.Context(), request.Fragments...)
	if err != nil {
		return err
	}
	return send(putResult{Rows: result.Rows, Version: result.Version})
}

func (s *Service) abortWrite(body []byte, out flight.FlightService_DoActionServer, send func(any) error) error {
	var request struct {
		WriteID string `json:"writeId"`
	}
	if err := wire.DecodeStrict(bytes.NewReader(body), &request); err != nil {
		return err
	}
	write, err := s.o.Connector.FindWrite(request.WriteID)
	if err != nil {
		return err
	}
	if err := write.Abort(out.Context()); err != nil {
		return err
	}
	return send(struct{}{})
}
