package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"sort"
	"strings"
	"syscall"
	"time"

	"github.com/peterh/liner"
)

const shellHelp = `Statements end with ; and may span lines. Ctrl-C cancels a running statement.
  \d            tables        \d TABLE      columns of a table
  \timing       time on/off   \help         this text
  \q            leave
`

// shell is the interactive loop of 'memconn sql'.
type shell struct {
	client *client
	out    io.Writer
	timing bool
	words  []string // completion: keywords, tables, columns
}

func newShell(c *client, out io.Writer) *shell { return &shell{client: c, out: out, timing: true} }

// loop reads statements until end of input or \q.
//
// An interrupt cancels the statement that runs, never the shell, so the shell
// does not run under the command's context, which ends with an interrupt.
func (s *shell) loop(ctx context.Context) error {
	ctx = context.WithoutCancel(ctx)
	signal.Reset(syscall.SIGTERM)
	if _, err := s.client.query(ctx, "SELECT 1"); err != nil {
		return err
	}
	s.refreshWords(ctx)
	line := liner.NewLiner()
	defer func() { _ = line.Close() }()
	line.SetCtrlCAborts(true)
	line.SetMultiLineMode(true)
	line.SetCompleter(s.candidates)
	history := historyFile()
	if f, err := os.Open(history); err == nil {
		_, _ = line.ReadHistory(f)
		f.Close()
	}
	defer saveHistory(line, history)
	fmt.Fprintf(s.out, "memconn %s, %s. \\help helps, \\q leaves.\n", version, s.client.address)
	pending := ""
	for {
		prompt := "memconn> "
		if pending != "" {
			prompt = "      -> "
		}
		input, err := line.Prompt(prompt)
		switch {
		case errors.Is(err, liner.ErrPromptAborted):
			pending = ""
			continue
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("read from the terminal: %w", err)
		}
		if pending == "" && strings.HasPrefix(strings.TrimSpace(input), `\`) {
			line.AppendHistory(input)
			if leave := s.meta(ctx, strings.Fields(input)); leave {
				return nil
			}
			continue
		}
		if word := strings.ToLower(strings.Trim(input, " \t;")); pending == "" && (word == "quit" || word == "exit") {
			return nil
		}
		pending += input + "\n"
		if strings.TrimSpace(pending) == "" {
			pending = ""
		}
		if complete(pending) {
			remember(line, pending)
			s.run(ctx, pending)
			pending = ""
		}
	}
}

// remember puts a statement into the history, as one line when that means the
// same: not with a comment or a text over several lines.
func remember(line *liner.State, statement string) {
	lines := strings.Split(strings.TrimSpace(statement), "\n")
	if len(lines) > 1 && !strings.Contains(statement, "--") && !strings.ContainsAny(statement, "'\"$") {
		lines = []string{strings.Join(lines, " ")}
	}
	for _, l := range lines {
		line.AppendHistory(l)
	}
}

// meta runs a backslash command and tells whether to leave.
func (s *shell) meta(ctx context.Context, words []string) bool {
	switch {
	case words[0] == `\q`:
		return true
	case words[0] == `\d` && len(words) == 1:
		s.run(ctx, "SHOW TABLES")
	case words[0] == `\d`:
		s.run(ctx, "DESCRIBE "+strings.TrimSuffix(words[1], ";"))
	case words[0] == `\timing`:
		s.timing = !s.timing
		fmt.Fprintf(s.out, "timing is %v\n", map[bool]string{true: "on", false: "off"}[s.timing])
	case words[0] == `\help`, words[0] == `\?`:
		fmt.Fprint(s.out, shellHelp)
	default:
		fmt.Fprintf(s.out, "unknown command %s; \\help lists the commands\n", words[0])
	}
	return false
}

// run executes statements; an interrupt cancels the one that runs.
func (s *shell) run(ctx context.Context, text string) {
	for _, statement := range splitStatements(text) {
		running, stop := signal.NotifyContext(ctx, os.Interrupt)
		begin := time.Now()
		err := runStatement(running, s.client, statement, "table", s.out)
		stop()
		if err != nil {
			fmt.Fprintln(s.out, "error:", err)
			return
		}
		if s.timing {
			fmt.Fprintf(s.out, "time: %s\n", time.Since(begin).Round(10*time.Microsecond))
		}
		if changesNames(statement) {
			s.refreshWords(ctx)
		}
	}
}

// changesNames tells whether completion should ask for names again.
func changesNames(statement string) bool {
	first := strings.ToUpper(strings.Fields(statement)[0])
	return first == "CREATE" || first == "DROP" || first == "ALTER" || first == "USE"
}

var keywords = strings.Fields(`SELECT FROM WHERE GROUP BY ORDER HAVING LIMIT JOIN LEFT INNER ON USING AND OR NOT NULL IS IN
	BETWEEN LIKE COUNT SUM AVG MIN MAX DISTINCT CREATE TABLE SCHEMA DROP INSERT INTO VALUES WITH sorted_by index_columns
	SHOW TABLES SCHEMAS COLUMNS PARTS JOBS DESCRIBE EXPLAIN ANALYZE TRUNCATE USE SET SESSION CALL system.process`)

// refreshWords asks the server for the names that completion offers. Without
// an answer completion knows the keywords only.
func (s *shell) refreshWords(ctx context.Context) {
	words := append([]string(nil), keywords...)
	if tables, err := s.client.query(ctx, "SHOW TABLES"); err == nil {
		for _, b := range tables.batches {
			for i := range int(b.NumRows()) {
				words = append(words, cell(b.Column(0), i))
			}
		}
		tables.Release()
	}
	sort.Strings(words)
	s.words = words
}

// candidates completes the last word of the line.
func (s *shell) candidates(line string) []string {
	cut := strings.LastIndexAny(line, " \t(,=") + 1
	prefix := line[cut:]
	if prefix == "" {
		return nil
	}
	var out []string
	for _, word := range s.words {
		if len(word) >= len(prefix) && strings.EqualFold(word[:len(prefix)], prefix) {
			out = append(out, line[:cut]+word)
		}
	}
	return out
}

func historyFile() string {
	home, err := os.UserHomeDir()
	if err != nil {
		return ""
	}
	return filepath.Join(home, ".memconn_history")
}

func saveHistory(line *liner.State, file string) {
	if file == "" {
		return
	}
	f, err := os.OpenFile(file, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return // history is a comfort; losing it is no failure
	}
	defer f.Close()
	_, _ = line.WriteHistory(f)
}
