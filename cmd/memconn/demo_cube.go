package main

import (
	"context"
	"fmt"
	"regexp"
)

// The statements of the tour's cube, and the query that it answers.
const (
	createFlightCube = `CREATE CUBE flights_by_distance ON flights
WITH (AGGREGATIONS = (count(*), sum(delay), max(delay)), GROUP = (distance))`
	fillFlightCube = "INSERT INTO CUBE flights_by_distance"
	appendFlights  = "INSERT INTO flights VALUES (77, 1500, 3.5), (-8, 1501, 4.25)"
	cubeQuery      = "SELECT count(*), sum(delay), max(delay) FROM flights WHERE distance BETWEEN 1400 AND 1599"
)

// cube lets a cube answer a query, with rows that were committed after its cells were made.
func (t *tour) cube(ctx context.Context) error {
	// The new rows must not get cells before they are asked for.
	t.node.conn.PauseJobs()
	defer t.node.conn.ResumeJobs()
	for _, statement := range []string{createFlightCube, fillFlightCube, appendFlights} {
		if err := t.show(ctx, statement); err != nil {
			return err
		}
	}
	t.truth.add(77, 1500, 3.5)
	t.truth.add(-8, 1501, 4.25)
	want := t.truth.delays(1400, 1599)
	r, err := t.rest(ctx, cubeQuery)
	if err != nil {
		return err
	}
	if err := expect("the answer of the cube over REST", r.row(), want); err != nil {
		return err
	}
	if r.Stats.Cube != "default.flights_by_distance" {
		return fmt.Errorf("the cube default.flights_by_distance should have answered, not %q", r.Stats.Cube)
	}
	if err := t.readsNewRows(ctx); err != nil {
		return err
	}
	got, err := t.oneRow(ctx, cubeQuery)
	if err != nil {
		return err
	}
	if err := expect("the answer of the cube over Flight SQL", got, want); err != nil {
		return err
	}
	fmt.Fprintf(t.out, "> %s\n  %s   (cube %s and the 2 new rows, %.2f ms)\n", cubeQuery, want, r.Stats.Cube, r.Stats.ElapsedMs)
	if err := t.show(ctx, "EXPLAIN "+cubeQuery); err != nil {
		return err
	}
	return t.show(ctx, "DROP CUBE flights_by_distance")
}

var explainedCube = regexp.MustCompile(`cube: default\.flights_by_distance \(cells (\d+), base rows (\d+)\)`)

// readsNewRows wants the plan of the cube's query to read cells, and of the table the two new rows alone.
func (t *tour) readsNewRows(ctx context.Context) error {
	explained, err := t.rest(ctx, "EXPLAIN "+cubeQuery)
	if err != nil {
		return err
	}
	m := explainedCube.FindStringSubmatch(fmt.Sprint(explained.Rows))
	if m == nil || m[1] == "0" || m[2] != "2" {
		return fmt.Errorf("the cube's query should read cells and the 2 new rows of the table, its plan is %v", explained.Rows)
	}
	return nil
}

// delays gives number, sum and maximum of the delays of flights of some distances.
func (f *flights) delays(from, to int16) string {
	count, sum, most := 0, 0, int16(-1<<15)
	for i, d := range f.distance {
		if d >= from && d <= to {
			count++
			sum += int(f.delay[i])
			most = max(most, f.delay[i])
		}
	}
	return fmt.Sprint(count, sum, most)
}
