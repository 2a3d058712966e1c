package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/memconn/memconn/api/fileformat"
)

const createFlights = `CREATE TABLE flights (delay SMALLINT, distance SMALLINT, time REAL)
WITH (sorted_by = ARRAY['distance', 'time'], index_columns = ARRAY['delay'])`

func (t *tour) create(ctx context.Context) error {
	// Processing waits, so that the tour can show the table before and after.
	t.node.conn.PauseJobs()
	return t.show(ctx, createFlights)
}

func (t *tour) load(ctx context.Context) error {
	reader, err := fileformat.Open(fileformat.ArrowFile, bytes.NewReader(sampleFlights), fileformat.Options{})
	if err != nil {
		return err
	}
	defer reader.Release()
	rows, err := t.client.ExecuteIngest(ctx, reader, ingestOptions(loadOptions{table: "flights", mode: "append"}))
	if err != nil {
		return t.client.explain(err)
	}
	fmt.Fprintf(t.out, "loaded %s over Flight SQL, durable when acknowledged\n", plural(rows, "row"))
	return expect("the number of loaded rows", rows, int64(len(t.truth.delay)))
}

func (t *tour) askFresh(ctx context.Context) error { return t.ask(ctx, false) }

func (t *tour) process(ctx context.Context) error {
	t.node.conn.ResumeJobs()
	if err := t.show(ctx, "CALL system.process(flights)"); err != nil {
		return err
	}
	return t.show(ctx, "SHOW PARTS FROM flights")
}

func (t *tour) askProcessed(ctx context.Context) error { return t.ask(ctx, true) }

func (t *tour) evict(ctx context.Context) error {
	if err := t.show(ctx, "CALL system.evict()"); err != nil {
		return err
	}
	loaded, err := t.answers(ctx, true)
	if err != nil {
		return err
	}
	if loaded == 0 {
		return errors.New("no byte was loaded from disk, though every page was evicted")
	}
	fmt.Fprintf(t.out, "%d bytes came back from disk: only the pages that the queries needed\n", loaded)
	return nil
}

func (t *tour) restart(ctx context.Context) error {
	if err := t.show(ctx, "INSERT INTO flights VALUES (999, 4999, 12.5)"); err != nil {
		return err
	}
	t.truth.add(999, 4999, 12.5)
	if err := t.stop(ctx); err != nil {
		return err
	}
	fmt.Fprintln(t.out, "the server is down")
	if err := t.start(ctx); err != nil {
		return err
	}
	if err := t.show(ctx, "SELECT delay, distance, time FROM flights WHERE distance = 4999"); err != nil {
		return err
	}
	return t.ask(ctx, true)
}

func (t *tour) refuse(ctx context.Context) error {
	_, err := t.client.query(ctx, "SELECT count(*) FROM fligths")
	if err == nil {
		return errors.New("a query of a table that does not exist was answered")
	}
	fmt.Fprintf(t.out, "> SELECT count(*) FROM fligths\nerror: %v\n", err)
	if !strings.Contains(err.Error(), "fligths") {
		return fmt.Errorf("the error does not name the table: %w", err)
	}
	_, err = t.answers(ctx, false)
	return err
}

// show runs a statement over Flight SQL and prints statement and result.
func (t *tour) show(ctx context.Context, statement string) error {
	fmt.Fprintf(t.out, "> %s\n", statement)
	return runStatement(ctx, t.client, statement, "table", t.out)
}

// ask puts every question, checks the answers and prints what each one read.
func (t *tour) ask(ctx context.Context, processed bool) error {
	_, err := t.answers(ctx, processed)
	return err
}

// answers asks over REST for the answer and what it cost, and over Flight SQL
// for the answer, and compares both with the truth. It returns the bytes that
// were loaded from disk.
func (t *tour) answers(ctx context.Context, processed bool) (int64, error) {
	var loaded int64
	for _, q := range questions {
		want := q.truth(t.truth)
		r, err := t.rest(ctx, q.sql)
		if err != nil {
			return 0, err
		}
		if err := expect("the answer over REST to "+q.sql, r.row(), want); err != nil {
			return 0, err
		}
		got, err := t.oneRow(ctx, q.sql)
		if err != nil {
			return 0, err
		}
		if err := expect("the answer over Flight SQL to "+q.sql, got, want); err != nil {
			return 0, err
		}
		fmt.Fprintf(t.out, "> %s\n  %s   (%s)\n", q.sql, want, r.cost())
		if processed && q.prune && r.Stats.RowsRead*4 > r.Stats.RowsTotal {
			return 0, fmt.Errorf("%s read %d of %d rows of a sorted table, expected less than a quarter", q.sql, r.Stats.RowsRead, r.Stats.RowsTotal)
		}
		loaded += r.Stats.BytesLoaded
	}
	return loaded, nil
}

// oneRow gives the only row of a result, its values separated by spaces.
func (t *tour) oneRow(ctx context.Context, statement string) (string, error) {
	a, err := t.client.query(ctx, statement)
	if err != nil {
		return "", err
	}
	defer a.Release()
	if err := expect("the number of rows of "+statement, a.rows, 1); err != nil {
		return "", err
	}
	var values []string
	for _, b := range a.batches {
		for _, column := range b.Columns() {
			values = append(values, cell(column, 0))
		}
	}
	return strings.Join(values, " "), nil
}

// restAnswer is what POST /v1/query says.
type restAnswer struct {
	Rows  [][]any `json:"rows"`
	Stats struct {
		RowsTotal, RowsRead, PageGroupsTotal, PageGroupsRead, BytesLoaded int64
		ElapsedMs                                                         float64
		Cube                                                              string
	} `json:"stats"`
}

// cost says what an answer read.
func (r restAnswer) cost() string {
	s := r.Stats
	if s.RowsRead == 0 {
		return fmt.Sprintf("counted in the indexes, none of %d rows read, %.2f ms", s.RowsTotal, s.ElapsedMs)
	}
	return fmt.Sprintf("read %d of %d rows, %d of %d page groups, %.2f ms", s.RowsRead, s.RowsTotal, s.PageGroupsRead, s.PageGroupsTotal, s.ElapsedMs)
}

func (r restAnswer) row() string {
	if len(r.Rows) != 1 {
		return fmt.Sprintf("%d rows", len(r.Rows))
	}
	var values []string
	for _, v := range r.Rows[0] {
		values = append(values, fmt.Sprint(v))
	}
	return strings.Join(values, " ")
}

func (t *tour) rest(ctx context.Context, statement string) (restAnswer, error) {
	var answer restAnswer
	body, err := json.Marshal(map[string]string{"sql": statement})
	if err != nil {
		return answer, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+t.node.api.HTTPAddr()+"/v1/query", bytes.NewReader(body))
	if err != nil {
		return answer, err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return answer, err
	}
	defer response.Body.Close()
	raw, err := io.ReadAll(response.Body)
	if err != nil {
		return answer, err
	}
	if response.StatusCode != http.StatusOK {
		return answer, fmt.Errorf("REST answered %s: %s", response.Status, raw)
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	return answer, decoder.Decode(&answer)
}
