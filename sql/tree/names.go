package tree

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/memconn/memconn/sql/token"
)

// plainWord is a name that DuckDB writes without quotes, unless it is reserved.
var plainWord = regexp.MustCompile(`^[a-z_][a-z0-9_]*$`)

// reserved are the words that DuckDB writes in quotes: the reserved ones of
// duckdb_keywords().
var reserved = wordSet(`all analyse analyze and any array as asc_p asymmetric both case cast check_p collate column constraint create_p
	default deferrable desc_p describe distinct do else end_p except false_p fetch for foreign from grant group_p having in_p initially
	intersect into lambda lateral_p leading limit not null_p offset on only or order pivot pivot_longer pivot_wider placing primary
	qualify references returning select show some summarize symmetric table then to trailing true_p union unique unpivot using variadic
	when where window with`)

func wordSet(words string) map[string]bool {
	set := map[string]bool{}
	for _, word := range strings.Fields(words) {
		set[strings.TrimSuffix(word, "_p")] = true
	}
	return set
}

// quoteAsNeeded writes a name as DuckDB does in the names of columns.
func quoteAsNeeded(name string) string {
	if plainWord.MatchString(name) && !reserved[name] {
		return name
	}
	return token.QuoteIdent(name)
}

// quoted writes a name with its parts as DuckDB does.
func (n Name) quoted() string {
	out := quoteAsNeeded(n.Table)
	if n.Schema != "" {
		out = quoteAsNeeded(n.Schema) + "." + out
	}
	if n.Catalog != "" {
		out = quoteAsNeeded(n.Catalog) + "." + out
	}
	return out
}

// ResultName gives a column of the rewritten query the name it has in the
// original: a column without an alias is called like its expression, and a
// subquery in it names the tables.
func (q *Query) ResultName(name string) string {
	if q.guarded {
		name = unguard(name)
	}
	if q.calls == nil || !strings.Contains(name, q.function) {
		return name
	}
	return q.calls.ReplaceAllStringFunc(name, func(call string) string {
		m := q.calls.FindStringSubmatch(call)
		n, err := strconv.Atoi(m[1])
		if err != nil || n >= len(q.Scans) {
			return call
		}
		scan := q.Scans[n]
		if scan.implicit {
			return scan.written.quoted()
		}
		return scan.written.quoted() + m[2]
	})
}

// callsOf matches the calls that stand for tables, with their aliases.
func callsOf(function string) *regexp.Regexp {
	return regexp.MustCompile(regexp.QuoteMeta(function) + `\('(\d+)'\)( AS (?:"(?:[^"]|"")*"|[^\s(),]+))?`)
}
