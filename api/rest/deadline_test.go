package rest

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// deadlines remembers the read deadlines that were set.
type deadlines struct {
	*httptest.ResponseRecorder
	set []time.Time
}

func (d *deadlines) SetReadDeadline(t time.Time) error {
	d.set = append(d.set, t)
	return nil
}

// TestReadDeadlineEndsWithTheRead: a body that was read leaves no deadline behind,
// which would cancel the request when it passes.
func TestReadDeadlineEndsWithTheRead(t *testing.T) {
	w := &deadlines{ResponseRecorder: httptest.NewRecorder()}
	r := &deadlineReader{strings.NewReader("{}"), http.NewResponseController(w)}
	n, err := r.Read(make([]byte, 10))
	require.NoError(t, err)
	require.Equal(t, 2, n)
	require.Len(t, w.set, 2)
	require.False(t, w.set[0].IsZero())
	require.True(t, w.set[1].IsZero())
}
