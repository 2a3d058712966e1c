package bench

import "github.com/memconn/memconn/cmd/memconn/bench/peer"

// peerWorkers are connections of the peer, each with one prepared statement.
type peerWorkers struct {
	conns      []*peer.Conn
	statements []*peer.Stmt
}

// add opens one more connection and prepares the statement there.
func (w *peerWorkers) add(db *peer.DB, text string) error {
	c, err := db.Conn()
	if err != nil {
		return err
	}
	w.conns = append(w.conns, c)
	st, err := c.Prepare(text)
	if err != nil {
		return err
	}
	w.statements = append(w.statements, st)
	return nil
}

// close frees all of them.
func (w *peerWorkers) close() {
	for _, st := range w.statements {
		st.Close()
	}
	for _, c := range w.conns {
		c.Close()
	}
}
