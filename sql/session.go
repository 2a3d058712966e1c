package sql

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/memconn/memconn/connector"
	"github.com/memconn/memconn/sql/token"
)

// The session properties.
const (
	PropertyIndexes  = "enable_indexes"
	PropertyFastPath = "enable_fast_path"
	PropertyCubes    = "enable_cubes"
	PropertyTimeout  = "statement_timeout"
)

// settings is the state of a session; a statement works on a copy.
type settings struct {
	schema   string
	indexes  bool
	fastPath bool
	cubes    bool
	anyCube  bool          // a cube that can answer does, whatever it costs: set by tests alone
	timeout  time.Duration // 0: none
}

// Session is one client's state: the current schema and the properties. It is
// safe for concurrent use; a statement sees the state of its beginning.
type Session struct {
	engine *Engine

	mu struct {
		sync.Mutex
		settings
		closed bool
	}
}

// NewSession begins a session in the default schema.
func (e *Engine) NewSession() *Session {
	s := &Session{engine: e}
	s.mu.settings = e.defaults()
	return s
}

func (e *Engine) defaults() settings {
	return settings{schema: connector.DefaultSchema, indexes: true, fastPath: true, cubes: true, timeout: e.opts.StatementTimeout}
}

// Close ends the session: further statements are refused. Open results stay
// open.
func (s *Session) Close() {
	s.mu.Lock()
	s.mu.closed = true
	s.mu.Unlock()
}

// Schema gives the current schema.
func (s *Session) Schema() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.schema
}

// SetSchema makes an existing schema the current one; else SCHEMA_NOT_FOUND.
func (s *Session) SetSchema(name string) error {
	snapshot := s.engine.conn.Snapshot()
	defer snapshot.Close()
	for _, have := range snapshot.Schemas() {
		if strings.EqualFold(have, name) {
			s.mu.Lock()
			s.mu.schema = have
			s.mu.Unlock()
			return nil
		}
	}
	_, err := snapshot.Table(connector.TableName{Schema: name, Table: "t"})
	if connector.CodeOf(err) == connector.CodeSchemaNotFound {
		return err
	}
	return connector.Errorf(connector.CodeSchemaNotFound, "Schema %s not found", name)
}

// SetProperty sets a session property from its text; an unknown name or a bad
// value is INVALID_ARGUMENT.
func (s *Session) SetProperty(name, value string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.set(name, value)
}

// ResetProperty gives a property its default again.
func (s *Session) ResetProperty(name string) error {
	value, ok := s.engine.defaults().properties()[strings.ToLower(name)]
	if !ok {
		return unknownProperty(name)
	}
	return s.SetProperty(name, value)
}

// Properties gives all properties by name.
func (s *Session) Properties() map[string]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.properties()
}

func (s *Session) current() (settings, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.closed {
		return settings{}, badArgument("the session is closed")
	}
	return s.mu.settings, nil
}

func (s settings) properties() map[string]string {
	return map[string]string{
		PropertyIndexes:  strconv.FormatBool(s.indexes),
		PropertyFastPath: strconv.FormatBool(s.fastPath),
		PropertyCubes:    strconv.FormatBool(s.cubes),
		PropertyTimeout:  s.timeout.String(),
	}
}

func (s *settings) set(name, value string) error {
	switch strings.ToLower(name) {
	case PropertyIndexes:
		return setBool(&s.indexes, name, value)
	case PropertyFastPath:
		return setBool(&s.fastPath, name, value)
	case PropertyCubes:
		return setBool(&s.cubes, name, value)
	case PropertyTimeout:
		d, err := time.ParseDuration(value)
		if strings.EqualFold(value, "none") || value == "" {
			d, err = 0, nil
		}
		if err != nil || d < 0 {
			return badArgument("session property %s: %q is not a duration such as 30s, 5m or 0s for none", name, value)
		}
		s.timeout = d
		return nil
	}
	return unknownProperty(name)
}

func setBool(to *bool, name, value string) error {
	v, err := strconv.ParseBool(strings.ToLower(value))
	if err != nil {
		return badArgument("session property %s: %q is neither true nor false", name, value)
	}
	*to = v
	return nil
}

func unknownProperty(name string) error {
	s := settings{}
	known := slices.Sorted(maps.Keys(s.properties()))
	return badArgument("session property %s does not exist, known are: %s", name, strings.Join(known, ", "))
}

// oneStatement takes the semicolon off; more than one statement is an error.
func oneStatement(text string) (string, error) {
	s := token.New(text)
	last := 0
	for {
		t := s.Next()
		switch {
		case t.Kind == token.EOF:
			if last == 0 {
				return "", syntaxError(text, 0, "the statement is empty")
			}
			return text[:last], nil
		case t.Kind == token.Illegal:
			return "", syntaxError(text, t.Start, "unterminated literal, quoted name or comment")
		case t.Kind == token.Punct && s.Text(t) == ";":
			return text[:last], nothingFollows(&s, text, last)
		}
		last = t.End
	}
}

// nothingFollows checks that only semicolons come after the first one.
func nothingFollows(s *token.Scanner, text string, last int) error {
	if last == 0 {
		return syntaxError(text, 0, "the statement is empty")
	}
	for {
		t := s.Next()
		switch {
		case t.Kind == token.EOF:
			return nil
		case t.Kind == token.Punct && s.Text(t) == ";":
		default:
			return syntaxError(text, t.Start, "one statement at a time: nothing may follow the semicolon")
		}
	}
}

// checkSize bounds a statement's text.
func (e *Engine) checkSize(text string) error {
	if len(text) > e.opts.MaxStatementBytes {
		return connector.Errorf(connector.CodeLimitExceeded, "the statement has %d bytes, the limit is %d: use bulk loading for many rows", len(text), e.opts.MaxStatementBytes)
	}
	return nil
}

// ExecuteScript runs the statements of a script, separated by semicolons, one
// after the other, up to the first error. each is called with every result and
// must not keep it: the result is closed afterwards. each may be nil.
func (s *Session) ExecuteScript(ctx context.Context, text string, each func(statement string, r *Result) error) error {
	for _, statement := range token.Split(text) {
		r, err := s.Execute(ctx, statement)
		if err != nil {
			return err
		}
		if each != nil {
			err = each(statement, r)
		}
		if cerr := r.Close(); err == nil {
			err = cerr
		}
		if err != nil {
			return err
		}
	}
	return nil
}
