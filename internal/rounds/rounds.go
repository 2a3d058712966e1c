package rounds

import (
	"flag"
	"os"
	"strconv"
	"testing"

	"pgregory.net/rapid"
)

// Long tells whether the environment asks for long tests.
func Long() bool { return os.Getenv("TEST_LONG") != "" }

// Of gives the second number when the environment asks for long tests.
func Of(normal, long int) int {
	if Long() {
		return long
	}
	return normal
}

// Check is rapid.Check with a number of rounds of its own, for properties that are dear
// (each round makes a table, say) beside those that take rapid's number. That number is a
// flag of the process, so a test that calls Check must not run beside others.
func Check(t *testing.T, normal, long int, property func(*rapid.T)) {
	t.Helper()
	const name = "rapid.checks"
	before := flag.Lookup(name).Value.String()
	set := func(n string) {
		if err := flag.Set(name, n); err != nil {
			t.Fatal(err)
		}
	}
	set(strconv.Itoa(Of(normal, long)))
	defer set(before)
	rapid.Check(t, property)
}
