package fileformat

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
)

// spool holds a whole input for reading it twice or at random: small inputs in memory, larger ones in a temporary file,
// files in place.
type spool struct {
	io.ReadSeeker
	io.ReaderAt
	size int64
	file *os.File // temporary; nil when the bytes are in memory or the caller's own file
}

// newSpool drains r. Whatever it read before an error is dropped again.
func newSpool(r io.Reader, o Options) (*spool, error) {
	if f, ok := r.(*os.File); ok {
		if info, err := f.Stat(); err == nil && info.Mode().IsRegular() {
			if pos, err := f.Seek(0, io.SeekCurrent); err == nil && pos == 0 {
				return &spool{ReadSeeker: f, ReaderAt: f, size: info.Size()}, nil
			}
		}
	}
	var head bytes.Buffer
	n, err := io.CopyN(&head, r, o.SpoolMemoryBytes)
	if errors.Is(err, io.EOF) {
		b := bytes.NewReader(head.Bytes())
		return &spool{ReadSeeker: b, ReaderAt: b, size: n}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read input: %w", err)
	}
	f, err := os.CreateTemp(o.TempDir, "upload-*")
	if err != nil {
		return nil, fmt.Errorf("create temporary file for the input: %w", err)
	}
	s := &spool{ReadSeeker: f, ReaderAt: f, file: f}
	s.size, err = io.Copy(f, io.MultiReader(&head, r))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("spool input: %w", err), s.close())
	}
	return s, s.rewind()
}

func (s *spool) rewind() error {
	if _, err := s.Seek(0, io.SeekStart); err != nil {
		return fmt.Errorf("rewind spooled input: %w", err)
	}
	return nil
}

// Read is the ReadSeeker's; it is named because two embedded interfaces are there.
func (s *spool) Read(p []byte) (int, error) { return s.ReadSeeker.Read(p) }

func (s *spool) close() error {
	if s == nil || s.file == nil {
		return nil
	}
	err := errors.Join(s.file.Close(), os.Remove(s.file.Name()))
	s.file = nil
	return err
}
