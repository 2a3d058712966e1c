package grammar

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/alecthomas/participle/v2"

	"github.com/memconn/memconn/sql/token"
)

var parser = participle.MustBuild[Statement](
	participle.Lexer(definition{}),
	participle.CaseInsensitive("Ident"),
	participle.UseLookahead(16),
)

// SyntaxError says what is wrong and where.
type SyntaxError struct {
	Message string
	Offset  int // bytes into the statement
}

// Error gives the message without its place.
func (e *SyntaxError) Error() string { return e.Message }

// UnsupportedError names a statement that is understood but not carried out.
type UnsupportedError struct{ Statement string }

// Error names the statement.
func (e *UnsupportedError) Error() string { return e.Statement + " is not supported" }

// Parse parses one statement, without a semicolon at its end. Errors are
// *SyntaxError and *UnsupportedError.
func Parse(text string) (*Statement, error) {
	words := token.Keywords(text, 12)
	if len(words) == 0 {
		return nil, &SyntaxError{Message: "the statement is empty"}
	}
	if isQuery(words) {
		return &Statement{Query: text}, nil
	}
	if name := unsupported(words); name != "" {
		return nil, &UnsupportedError{Statement: name}
	}
	if !own[words[0]] {
		s := token.New(text)
		return nil, &SyntaxError{Message: fmt.Sprintf("no statement begins with %q", words[0]), Offset: s.Next().Start}
	}
	st, err := parser.ParseString("", text)
	if err != nil {
		return nil, syntaxError(text, err)
	}
	return finish(st, text)
}

// finish cuts out the texts and checks what the grammar can't.
func finish(st *Statement, text string) (*Statement, error) {
	switch {
	case st.CreateTable != nil:
		c := st.CreateTable
		if c.As != nil {
			c.As.fill(text)
			c.As.Value, c.NoData = splitData(c.As.Value)
		} else if len(c.Elements) == 0 {
			return nil, &SyntaxError{Message: "expected column definitions or AS query", Offset: len(text)}
		}
		for i := range c.Elements {
			if col := c.Elements[i].Column; col != nil {
				col.fill(text)
			}
		}
	case st.Alter != nil:
		if add := st.Alter.Add; add != nil {
			add.Column.fill(text)
		}
	case st.Insert != nil:
		st.Insert.Query.fill(text)
		if name := unsupportedInsert(st.Insert.Query.Value); name != "" {
			return nil, &UnsupportedError{Statement: name}
		}
	case st.Explain != nil:
		st.Explain.Statement.fill(text)
	case st.Show != nil:
		return finishShow(st, text)
	case st.CreateCube != nil, st.InsertCube != nil:
		return finishCube(st, text)
	}
	return st, nil
}

// fill cuts out the column's default.
func (c *Column) fill(text string) {
	for i := range c.Options {
		if d := c.Options[i].Default; d != nil {
			d.fill(text)
		}
	}
}

// finishShow normalises the two forms of SHOW.
func finishShow(st *Statement, text string) (*Statement, error) {
	s := st.Show
	s.Query.fill(text)
	if s.What == "" {
		s.What = s.Of
	}
	s.What = strings.ToUpper(s.What)
	if s.LikeColumns != nil {
		s.Like = s.LikeColumns
	}
	if s.Query != nil && s.What != "STATS" {
		return nil, &SyntaxError{Message: "SHOW " + s.What + " takes a table's name, not a query", Offset: s.Query.Start}
	}
	lists := s.What == "TABLES" || s.What == "SCHEMAS"
	if s.From != nil && !lists || s.Like != nil && !lists && s.What != "COLUMNS" {
		return nil, &SyntaxError{Message: "SHOW " + s.What + " takes neither FROM nor LIKE"}
	}
	return st, nil
}

// isQuery says whether DuckDB parses the statement.
func isQuery(words []string) bool {
	switch words[0] {
	case "SELECT", "WITH", "FROM", "VALUES", "TABLE", "(", "PIVOT", "UNPIVOT", "SUMMARIZE":
		return true
	case "DESCRIBE", "DESC":
		return len(words) > 1 && (words[1] == "SELECT" || words[1] == "WITH" || words[1] == "FROM" || words[1] == "VALUES" || words[1] == "(")
	}
	return false
}

// own lists the first words of the statements in the grammar.
var own = map[string]bool{
	"CREATE": true, "DROP": true, "ALTER": true, "INSERT": true, "TRUNCATE": true, "SHOW": true, "DESCRIBE": true,
	"DESC": true, "EXPLAIN": true, "USE": true, "SET": true, "RESET": true, "CALL": true, "ANALYZE": true, "COMMENT": true,
	"RELOAD": true,
}

// refused lists statements by their leading words.
var refused = [][]string{
	{"CREATE", "OR", "REPLACE", "VIEW"},
	{"CREATE", "VIEW"},
	{"CREATE", "UNIQUE", "INDEX"},
	{"CREATE", "MATERIALIZED", "VIEW"},
	{"CREATE", "TEMP"},
	{"CREATE", "TEMPORARY"},
	{"CREATE", "SEQUENCE"},
	{"CREATE", "TYPE"},
	{"CREATE", "MACRO"},
	{"CREATE", "FUNCTION"},
	{"CREATE", "SECRET"},
	{"CREATE", "ROLE"},
	{"CREATE", "USER"},
	{"DROP", "VIEW"},
	{"DROP", "MATERIALIZED", "VIEW"},
	{"DROP", "SEQUENCE"},
	{"DROP", "TYPE"},
	{"DROP", "MACRO"},
	{"DROP", "FUNCTION"},
	{"ALTER", "SCHEMA"},
	{"ALTER", "VIEW"},
	{"INSERT", "OR", "REPLACE"},
	{"INSERT", "OR", "IGNORE"},
	{"SHOW", "CREATE", "VIEW"},
	{"SHOW", "FUNCTIONS"},
	{"SHOW", "GRANTS"},
	{"SHOW", "ROLES"},
	{"DELETE"},
	{"UPDATE"},
	{"MERGE"},
	{"UPSERT"},
	{"REPLACE"},
	{"BEGIN"},
	{"START", "TRANSACTION"},
	{"COMMIT"},
	{"ROLLBACK"},
	{"ABORT"},
	{"SAVEPOINT"},
	{"VACUUM"},
	{"CHECKPOINT"},
	{"COMMENT", "ON", "COLUMN"},
	{"COMMENT", "ON", "SCHEMA"},
	{"GRANT"},
	{"REVOKE"},
	{"COPY"},
	{"ATTACH"},
	{"DETACH"},
	{"INSTALL"},
	{"LOAD"},
	{"PRAGMA"},
	{"EXPORT"},
	{"IMPORT"},
	{"PREPARE"},
	{"EXECUTE"},
	{"DEALLOCATE"},
	{"REFRESH"},
	{"REFRESH", "MATERIALIZED", "VIEW"},
	{"SET", "ROLE"},
	{"SET", "TIME", "ZONE"},
	{"SET", "VARIABLE"},
	{"KILL"},
}

// unsupported gives the name of a statement that is known and refused, or "".
func unsupported(words []string) string {
	for _, pattern := range refused {
		if len(words) >= len(pattern) && slices.Equal(words[:len(pattern)], pattern) {
			return strings.Join(pattern, " ")
		}
	}
	if len(words) > 2 && words[0] == "ALTER" && words[1] == "TABLE" {
		return unsupportedAlter(words[2:])
	}
	return ""
}

// unsupportedAlter looks at what follows the table's name.
func unsupportedAlter(words []string) string {
	if len(words) > 2 && words[0] == "IF" && words[1] == "EXISTS" {
		words = words[2:]
	}
	for len(words) > 2 && words[1] == "." {
		words = words[2:]
	}
	if len(words) < 2 {
		return ""
	}
	switch words[1] {
	case "ALTER", "EXECUTE":
		return "ALTER TABLE " + words[1]
	case "SET":
		if len(words) > 2 && words[2] != "PROPERTIES" {
			return "ALTER TABLE SET " + words[2]
		}
	}
	return ""
}

// unsupportedInsert finds the clauses of INSERT that are refused by name.
func unsupportedInsert(query string) string {
	s := token.New(query)
	depth, before := 0, ""
	for t := s.Next(); t.Kind != token.EOF; t = s.Next() {
		word := s.Text(t)
		switch {
		case word == "(":
			depth++
		case word == ")":
			depth--
		case t.Kind != token.Ident || depth > 0:
		case strings.EqualFold(word, "RETURNING"):
			return "INSERT ... RETURNING"
		case strings.EqualFold(word, "CONFLICT") && strings.EqualFold(before, "ON"):
			return "INSERT ... ON CONFLICT"
		case strings.EqualFold(word, "VALUES") && strings.EqualFold(before, "DEFAULT"):
			return "INSERT ... DEFAULT VALUES"
		}
		before = word
	}
	return ""
}

// syntaxError turns participle's errors into ours.
func syntaxError(text string, err error) error {
	offset, message := len(text), err.Error()
	var perr participle.Error
	if errors.As(err, &perr) {
		offset, message = perr.Position().Offset, perr.Message()
	}
	var unexpected *participle.UnexpectedTokenError
	if errors.As(err, &unexpected) {
		found := "unexpected " + unexpected.Unexpected.Value
		if unexpected.Unexpected.EOF() {
			found, offset = "unexpected end of the statement", len(text)
		}
		message = found + expectation(message)
	}
	return &SyntaxError{Message: message, Offset: offset}
}

// plainWords are what the parts of the grammar are called in messages.
var plainWords = map[string]string{
	"QualifiedName": "a name", "(<ident>": "a name", "<ident>": "a name", "Text": "a statement or query", "<string>": "a text in single quotes",
	"<integer>": "a number", "(<integer>": "a number", "Type": "a type", "Element": "a column definition", "Column": "a column definition",
	"Scalar": "a value", "Value": "a value", "Property": "a property", "Argument": "an argument", "Array": "a value",
}

// expectation says in plain words what participle expected next: the first thing
// only, because what may follow it is no help.
func expectation(message string) string {
	_, wanted, ok := strings.Cut(message, "(expected ")
	if !ok {
		return ""
	}
	wanted = strings.TrimSuffix(wanted, ")")
	first, _, _ := strings.Cut(wanted, " ")
	if plain, ok := plainWords[strings.TrimRight(first, ")?*+")]; ok {
		return ", expected " + plain
	}
	if strings.HasPrefix(first, `"`) {
		return ", expected " + strings.Trim(strings.TrimRight(first, ")?*+"), `"`)
	}
	// A choice: list the words it begins with.
	var words []string
	for _, word := range strings.Fields(wanted) {
		if word = strings.Trim(word, `()?*+"`); word != "" && word != "|" && strings.ToUpper(word) == word && !strings.Contains(word, "<") {
			words = append(words, word)
		}
	}
	if len(words) == 0 || len(words) > 24 {
		return ""
	}
	return ", expected one of: " + strings.Join(words, ", ")
}
