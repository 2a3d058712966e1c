package integration

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// startWithin bounds the start of a server, and every wait of the harness: what
// takes longer hangs.
const startWithin = 60 * time.Second

// memconnBinary is the memconn under test, built once with the race detector;
// plainBinary gives one without it, for tests that are about many rows.
var (
	memconnBinary string
	plainBinary   func() (string, error)
)

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "memconn-integration-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	memconnBinary = filepath.Join(dir, "memconn")
	if err := build(memconnBinary, "-race"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	plainBinary = sync.OnceValues(func() (string, error) {
		plain := filepath.Join(dir, "memconn-plain")
		return plain, build(plain)
	})
	code := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// build compiles the command into file.
func build(file string, flags ...string) error {
	args := append(append([]string{"build"}, flags...), "-o", file, module+"/cmd/memconn")
	command := exec.Command("go", args...)
	command.Dir = ".."
	if out, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("build memconn: %w\n%s", err, out)
	}
	return nil
}

// server is one running memconn.
type server struct {
	command      *exec.Cmd
	http, flight string // host:port
	log          *lockedBuffer
	done         chan error
}

// lockedBuffer is a buffer that the process writes while a test reads.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

var readyLine = regexp.MustCompile(`ready http=(\S+) flight=(\S+)`)

// start runs `memconn serve` on dir and returns when it is ready. It is killed
// at the end of the test if it still runs, and then must not have reported a
// data race.
func start(t *testing.T, dir string, flags ...string) *server {
	t.Helper()
	return started(t, memconnBinary, dir, flags...)
}

// startPlain is start without the race detector.
func startPlain(t *testing.T, dir string, flags ...string) *server {
	t.Helper()
	plain, err := plainBinary()
	require.NoError(t, err)
	return started(t, plain, dir, flags...)
}

func started(t *testing.T, binary, dir string, flags ...string) *server {
	t.Helper()
	s, err := launchBinary(binary, dir, flags...)
	require.NoError(t, err)
	t.Cleanup(func() {
		s.kill()
		require.NotContains(t, s.log.String(), "DATA RACE")
	})
	return s
}

// launch starts a server and waits for its ready line.
func launch(dir string, flags ...string) (*server, error) {
	return launchBinary(memconnBinary, dir, flags...)
}

func launchBinary(binary, dir string, flags ...string) (*server, error) {
	args := append([]string{"serve", "--data-dir", dir, "--http-listen", "127.0.0.1:0", "--flight-listen", "127.0.0.1:0"}, flags...)
	s := &server{command: exec.Command(binary, args...), log: &lockedBuffer{}, done: make(chan error, 1)}
	output, err := s.command.StderrPipe()
	if err != nil {
		return nil, err
	}
	s.command.Stdout = s.log
	if err := s.command.Start(); err != nil {
		return nil, err
	}
	ready := make(chan []string, 1)
	go func() {
		lines := bufio.NewScanner(io.TeeReader(output, s.log))
		for lines.Scan() {
			if m := readyLine.FindStringSubmatch(lines.Text()); m != nil {
				ready <- m
			}
		}
		_, _ = io.Copy(s.log, output) // a line too long for the scanner
		close(ready)
		s.done <- s.command.Wait()
	}()
	select {
	case m := <-ready:
		if m == nil {
			return nil, fmt.Errorf("memconn ended before it was ready: %w\n%s", <-s.done, s.log)
		}
		s.http, s.flight = m[1], m[2]
		return s, nil
	case <-time.After(startWithin):
		s.kill()
		return nil, fmt.Errorf("memconn was not ready within %s\n%s", startWithin, s.log)
	}
}

// kill ends the process as a power failure would: without a last word.
func (s *server) kill() {
	_ = s.command.Process.Signal(syscall.SIGKILL)
	s.wait()
}

// stop asks the server to end and returns its exit code.
func (s *server) stop() int {
	_ = s.command.Process.Signal(syscall.SIGTERM)
	s.wait()
	return s.command.ProcessState.ExitCode()
}

// wait returns when the process has ended; it may be called again.
func (s *server) wait() {
	err := <-s.done
	s.done <- err
}

// memconn runs a client command against the server and returns its output.
func (s *server) memconn(t *testing.T, args ...string) string {
	t.Helper()
	out, errors, code := s.run(args...)
	require.Equal(t, 0, code, "memconn %s\n%s%s\nserver: %s", strings.Join(args, " "), out, errors, s.log)
	return out
}

// run runs a client command and returns standard output, standard error and
// exit code.
func (s *server) run(args ...string) (string, string, int) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	command := exec.CommandContext(ctx, s.command.Path, args...)
	command.Env = append(os.Environ(), "MEMCONN_URL=grpc://"+s.flight)
	var out, errors bytes.Buffer
	command.Stdout, command.Stderr = &out, &errors
	_ = command.Run()
	return out.String(), errors.String(), command.ProcessState.ExitCode()
}

// verify checks the data directory of a stopped server offline.
func verify(t *testing.T, dir string) {
	t.Helper()
	inspect(t, dir)
}

// verifyClean demands also that nothing lies about, as after a clean stop.
func verifyClean(t *testing.T, dir string) {
	t.Helper()
	require.Empty(t, inspect(t, dir).Stray)
	left, err := filepath.Glob(filepath.Join(dir, "tmp", "*part*"))
	require.NoError(t, err)
	require.Empty(t, left)
}

type inspection struct {
	Stray    []uint64
	Problems []struct{ What string }
	Tables   []struct{ Rows int64 }
}

func inspect(t *testing.T, dir string) inspection {
	t.Helper()
	var report inspection
	out, err := exec.CommandContext(t.Context(), memconnBinary, "inspect", dir, "--verify", "--json").Output()
	require.NoError(t, json.Unmarshal(out, &report), "%s", out)
	require.NoError(t, err, "inspect --verify found faults: %+v", report.Problems)
	require.Empty(t, report.Problems)
	return report
}
