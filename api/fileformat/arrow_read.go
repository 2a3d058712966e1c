package fileformat

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync/atomic"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/memconn/memconn/spill/ipccheck"
)

// errCut tells that an Arrow stream has no end marker: its last batches may be missing.
var errCut = errors.New("the input ends before its end marker: it was cut short")

// boundedAllocator refuses single allocations that no honest message needs, such as the claimed size of a compressed
// buffer. It panics as an allocator must; the reader turns that into an error.
type boundedAllocator struct {
	memory.Allocator
	came func() int64 // bytes of the input so far, when that is known
}

// BoundedAllocator refuses single allocations over 1 GiB by a panic, for decoders of outside bytes whose callers recover.
func BoundedAllocator(mem memory.Allocator) memory.Allocator {
	return boundedAllocator{Allocator: mem}
}

func (a boundedAllocator) Allocate(size int) []byte {
	a.check(size)
	return a.Allocator.Allocate(size)
}

func (a boundedAllocator) Reallocate(size int, b []byte) []byte {
	a.check(size)
	return a.Allocator.Reallocate(size, b)
}

func (a boundedAllocator) check(size int) {
	limit := ipccheck.MaxBodyBytes
	if a.came != nil {
		limit = claimLimit(a.came())
	}
	if size < 0 || size > limit {
		panic(fmt.Errorf("a buffer of %d bytes is over the limit of %d for so small an input", size, limit))
	}
}

// claimLimit is the greatest buffer that an input of so many bytes may ask for: much for bytes that compress well, but a small
// input can't take all memory.
func claimLimit(came int64) int {
	const least, grows = 64 << 20, 1024
	return int(min(max(least, grows*min(came, ipccheck.MaxBodyBytes)), ipccheck.MaxBodyBytes))
}

// messages frames the messages of a stream. It stands in for Arrow's own reader, which trusts what the bytes claim: here metadata is
// looked over before it is decoded, a body is allocated as its bytes arrive, and a stream that stops without its end marker
// is an error instead of an end.
type messages struct {
	r    *bufio.Reader
	mem  memory.Allocator
	refs atomic.Int64
	msg  *ipc.Message
	came int64 // bytes of the messages so far
}

func newMessages(r *bufio.Reader, mem memory.Allocator) *messages {
	m := &messages{r: r, mem: mem}
	m.refs.Store(1)
	return m
}

func (m *messages) Retain() { m.refs.Add(1) }

func (m *messages) Release() {
	if m.refs.Add(-1) == 0 {
		m.drop()
	}
}

func (m *messages) drop() {
	if m.msg != nil {
		m.msg.Release()
		m.msg = nil
	}
}

// Message gives the next message, valid until the next call, or io.EOF at the end marker.
func (m *messages) Message() (*ipc.Message, error) {
	m.drop()
	const continuation = 0xFFFFFFFF
	n, err := m.number()
	if err == nil && n == continuation {
		n, err = m.number()
	}
	if err != nil {
		return nil, err
	}
	if n == 0 {
		return nil, io.EOF
	}
	if n < 4 || n > ipccheck.MaxMetadataBytes {
		return nil, fmt.Errorf("a message's metadata of %d bytes is not between 4 and %d", n, ipccheck.MaxMetadataBytes)
	}
	meta := make([]byte, n)
	if err := m.full(meta); err != nil {
		return nil, err
	}
	if err := ipccheck.Message(meta); err != nil {
		return nil, err
	}
	size, err := ipccheck.BodyBytes(meta)
	if err != nil {
		return nil, err
	}
	body := memory.NewResizableBuffer(m.mem)
	defer body.Release()
	if err := m.body(body, size); err != nil {
		return nil, err
	}
	m.msg = ipc.NewMessage(memory.NewBufferBytes(meta), body)
	return m.msg, nil
}

// body fills b step by step, so that a claimed length costs no more than the bytes that come.
func (m *messages) body(b *memory.Buffer, size int) error {
	const step = 8 << 20
	for have := 0; have < size; {
		n := min(size-have, max(step, have))
		b.Resize(have + n)
		if err := m.full(b.Bytes()[have:]); err != nil {
			return err
		}
		have += n
	}
	return nil
}

func (m *messages) number() (uint32, error) {
	var b [4]byte
	err := m.full(b[:])
	return binary.LittleEndian.Uint32(b[:]), err
}

func (m *messages) full(b []byte) error {
	n, err := io.ReadFull(m.r, b)
	m.came += int64(n)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errCut
	}
	if err != nil {
		return fmt.Errorf("read input: %w", err)
	}
	return nil
}

type arrowStream struct {
	rdr *ipc.Reader
	end func() error // checks what follows the end marker; nil for nothing
}

func openArrowStream(r io.Reader, o Options) (source, error) {
	return newArrowStream(bufio.NewReaderSize(r, 64<<10), o)
}

func newArrowStream(r *bufio.Reader, o Options) (*arrowStream, error) {
	in := newMessages(r, nil)
	mem := boundedAllocator{o.Allocator, func() int64 { return in.came }}
	in.mem = mem
	defer in.Release()
	rdr, err := ipc.NewReaderFromMessageReader(in, ipc.WithAllocator(mem))
	if err != nil {
		return nil, err
	}
	in.Retain()
	return &arrowStream{rdr: rdr}, nil
}

func (s *arrowStream) schema() *arrow.Schema { return s.rdr.Schema() }

func (s *arrowStream) next() (arrow.RecordBatch, error) {
	if s.rdr.Next() {
		batch := s.rdr.RecordBatch()
		batch.Retain()
		return batch, nil
	}
	if err := s.rdr.Err(); err != nil {
		return nil, err
	}
	if s.end != nil {
		if err := s.end(); err != nil {
			return nil, err
		}
	}
	return nil, io.EOF
}

func (s *arrowStream) close() error {
	s.rdr.Release()
	return nil
}

const fileMagic = "ARROW1"

// openArrowFile reads an Arrow file from front to back: it is a stream between a magic number and a footer. The footer only repeats
// where the messages are, for readers that jump; here it must be there, as the sign that the file is whole.
func openArrowFile(r io.Reader, o Options) (source, error) {
	in := bufio.NewReaderSize(r, 64<<10)
	head := make([]byte, 8)
	if _, err := io.ReadFull(in, head); err != nil || string(head[:len(fileMagic)]) != fileMagic {
		return nil, errors.New("not an Arrow file: the magic number is missing")
	}
	s, err := newArrowStream(in, o)
	if err != nil {
		return nil, err
	}
	s.end = func() error { return checkFooter(in) }
	return s, nil
}

// checkFooter reads the rest of the file: footer, its length, magic number.
func checkFooter(r io.Reader) error {
	rest, err := io.ReadAll(io.LimitReader(r, ipccheck.MaxMetadataBytes+1))
	if err != nil {
		return fmt.Errorf("read input: %w", err)
	}
	end := len(rest) - len(fileMagic) - 4
	if end < 0 || string(rest[end+4:]) != fileMagic || int64(binary.LittleEndian.Uint32(rest[end:])) != int64(end) {
		return errors.New("the file's footer is missing or malformed: it was cut short")
	}
	return nil
}
