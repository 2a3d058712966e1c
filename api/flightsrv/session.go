package flightsrv

import (
	"context"
	"net/http"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/stats"

	"github.com/memconn/memconn/api/plan"
	"github.com/memconn/memconn/api/tickets"
)

// cookieName is the cookie that names a session over several connections.
const cookieName = "memconn_session"

// session is one client's state.
type session struct {
	*plan.State
	cookie string
	used   time.Time // guarded by the table's lock
}

// sessionTable finds the session of a call: that of its cookie, else that of its connection. A connection's session ends
// with it; a session gets a cookie when it is given options, and then lives on without its connection until it was idle
// too long or is the longest idle of too many.
type sessionTable struct {
	max int
	ttl time.Duration
	now func() time.Time
	mu  struct {
		sync.Mutex
		byCookie map[string]*session
	}
}

func newSessionTable(most int, ttl time.Duration) *sessionTable {
	t := &sessionTable{max: most, ttl: ttl, now: time.Now}
	t.mu.byCookie = map[string]*session{}
	return t
}

type connKey struct{}

// conn is what a connection remembers; its session is made when first asked for.
type conn struct {
	mu struct {
		sync.Mutex
		session *session
	}
}

func (c *conn) get() *session {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.session == nil {
		c.mu.session = &session{State: plan.NewState("")}
	}
	return c.mu.session
}

func (c *conn) set(s *session) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mu.session = s
}

// connTagger gives every connection its conn.
type connTagger struct{}

// ConnTagger is the stats handler that a grpc.Server needs for sessions to belong to connections.
func ConnTagger() stats.Handler { return connTagger{} }

func (connTagger) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context {
	return context.WithValue(ctx, connKey{}, &conn{})
}
func (connTagger) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context { return ctx }
func (connTagger) HandleConn(context.Context, stats.ConnStats)                     {}
func (connTagger) HandleRPC(context.Context, stats.RPCStats)                       {}

func connOf(ctx context.Context) *conn {
	if c, ok := ctx.Value(connKey{}).(*conn); ok {
		return c
	}
	return &conn{}
}

// cookieOf reads our cookie; anything malformed counts as none.
func cookieOf(ctx context.Context) string {
	md, _ := metadata.FromIncomingContext(ctx)
	for _, line := range md.Get("cookie") {
		cookies, err := http.ParseCookie(line)
		if err != nil {
			continue
		}
		for _, c := range cookies {
			if c.Name == cookieName {
				return c.Value
			}
		}
	}
	return ""
}

func (t *sessionTable) of(ctx context.Context) *session {
	if cookie := cookieOf(ctx); cookie != "" {
		t.mu.Lock()
		s, ok := t.mu.byCookie[cookie]
		if ok && t.now().Sub(s.used) <= t.ttl {
			s.used = t.now()
			t.mu.Unlock()
			return s
		}
		t.mu.Unlock()
	}
	return connOf(ctx).get()
}

// name gives the call's session a cookie and sends it.
func (t *sessionTable) name(ctx context.Context, s *session) {
	t.mu.Lock()
	s.used = t.now()
	if s.cookie == "" {
		t.makeRoomLocked()
		s.cookie = tickets.NewID()
		t.mu.byCookie[s.cookie] = s
	}
	cookie := s.cookie
	t.mu.Unlock()
	// Without a server stream in ctx there is nobody to send it to, which is no loss: the connection keeps the session.
	_ = grpc.SetHeader(ctx, metadata.Pairs("set-cookie", cookieName+"="+cookie))
}

func (t *sessionTable) makeRoomLocked() {
	var oldest *session
	for cookie, s := range t.mu.byCookie {
		if t.now().Sub(s.used) > t.ttl {
			delete(t.mu.byCookie, cookie)
		} else if oldest == nil || s.used.Before(oldest.used) {
			oldest = s
		}
	}
	if len(t.mu.byCookie) >= t.max && oldest != nil {
		delete(t.mu.byCookie, oldest.cookie)
	}
}

// end forgets the call's session; the next call on the connection begins a new one.
func (t *sessionTable) end(ctx context.Context) {
	s := t.of(ctx)
	t.mu.Lock()
	delete(t.mu.byCookie, s.cookie)
	t.mu.Unlock()
	connOf(ctx).set(nil)
}

func (t *sessionTable) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	clear(t.mu.byCookie)
}
