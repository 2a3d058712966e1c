package plan

import (
	"maps"
	"strings"
	"sync"

	"github.com/memconn/memconn/connector"
	"github.com/memconn/memconn/sql"
)

// Catalog is the name of the one catalog.
const Catalog = "memory"

// State is what a client's statements share: the current schema and the session properties. It is safe for concurrent
// use. Every statement runs in its own sql.Session made from the state, so a client's parallel statements don't wait for
// each other.
type State struct {
	mu struct {
		sync.Mutex
		schema     string
		properties map[string]string
	}
}

// NewState gives the state of a new client. An empty schema is the default one.
func NewState(schema string) *State {
	s := &State{}
	s.mu.schema = schema
	s.mu.properties = map[string]string{}
	return s
}

// Schema gives the current schema, "default" if none was set.
func (s *State) Schema() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.schema == "" {
		return connector.DefaultSchema
	}
	return s.mu.schema
}

// Properties gives a copy of the properties that were set.
func (s *State) Properties() map[string]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.mu.properties)
}

// Session makes a sql.Session of the state; the caller closes it.
func (s *State) Session(engine *sql.Engine) (*sql.Session, error) {
	s.mu.Lock()
	schema, properties := s.mu.schema, maps.Clone(s.mu.properties)
	s.mu.Unlock()
	session := engine.NewSession()
	if schema != "" {
		if err := session.SetSchema(schema); err != nil {
			session.Close()
			return nil, err
		}
	}
	for name, value := range properties {
		if err := session.SetProperty(name, value); err != nil {
			session.Close()
			return nil, err
		}
	}
	return session, nil
}

// SetSchema makes the schema current; the engine must know it.
func (s *State) SetSchema(engine *sql.Engine, schema string) error {
	return s.change(engine, func(session *sql.Session) error { return session.SetSchema(schema) })
}

// SetProperty sets a session property; the engine checks name and value.
func (s *State) SetProperty(engine *sql.Engine, name, value string) error {
	return s.change(engine, func(session *sql.Session) error { return session.SetProperty(name, value) })
}

func (s *State) change(engine *sql.Engine, set func(*sql.Session) error) error {
	session, err := s.Session(engine)
	if err != nil {
		return err
	}
	defer session.Close()
	before := settingsOf(session)
	if err := set(session); err != nil {
		return err
	}
	s.adopt(before, settingsOf(session))
	return nil
}

// settings is what a session holds at one moment.
type settings struct {
	schema     string
	properties map[string]string
}

func settingsOf(session *sql.Session) settings {
	return settings{session.Schema(), session.Properties()}
}

// adopt takes over what a statement such as USE or SET SESSION changed in its session, and nothing else: the session of a prepared
// statement may be older than the state.
func (s *State) adopt(before, after settings) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if after.schema != before.schema {
		s.mu.schema = after.schema
	}
	for name, value := range after.properties {
		if before.properties[name] != value {
			s.mu.properties[name] = value
		}
	}
}

// CheckCatalog refuses every catalog but the one there is; empty is that one.
func CheckCatalog(catalog string) error {
	if catalog == "" || strings.EqualFold(catalog, Catalog) {
		return nil
	}
	return connector.Errorf(connector.CodeInvalidArgument, "there is no catalog %q, the only one is %q", catalog, Catalog)
}
