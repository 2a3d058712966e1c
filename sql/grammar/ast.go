package grammar

import (
	"strconv"
	"strings"

	"github.com/memconn/memconn/sql/token"
)

// Name is an identifier, unquoted, in the case it was written in.
type Name string

// Capture is participle's hook: it takes the quotes off.
func (n *Name) Capture(values []string) error {
	*n = Name(token.Unquote(values[0]))
	return nil
}

// Literal is the value of a string literal.
type Literal string

// Capture is participle's hook: it takes the quotes off.
func (l *Literal) Capture(values []string) error {
	*l = Literal(token.Unquote(values[0]))
	return nil
}

// QualifiedName is [catalog.][schema.]name.
type QualifiedName struct {
	Parts []Name `parser:"@(Ident|Quoted) ( '.' @(Ident|Quoted) ( '.' @(Ident|Quoted) )? )?"`
}

// Last gives the table's own name.
func (q QualifiedName) Last() string { return string(q.Parts[len(q.Parts)-1]) }

// String writes the parts with dots, unquoted, for messages.
func (q QualifiedName) String() string {
	words := make([]string, len(q.Parts))
	for i, p := range q.Parts {
		words[i] = string(p)
	}
	return strings.Join(words, ".")
}

// Statement is one parsed statement; exactly one field is set.
type Statement struct {
	// Query is the text of a statement that DuckDB parses.
	Query string

	// The statements about cubes come first: INSERT INTO CUBE c is no INSERT INTO a
	// table with that name.
	CreateCube   *CreateCube   `parser:"  @@"`
	InsertCube   *InsertCube   `parser:"| @@"`
	ReloadCube   *ReloadCube   `parser:"| @@"`
	DropCube     *DropCube     `parser:"| @@"`
	ShowCubes    *ShowCubes    `parser:"| @@"`
	CreateSchema *CreateSchema `parser:"| @@"`
	// The commonest statement of each first word comes last: the errors of the last one show.
	CreateIndex  *CreateIndex  `parser:"| @@"`
	CreateTable  *CreateTable  `parser:"| @@"`
	DropSchema   *DropSchema   `parser:"| @@"`
	DropIndex    *DropIndex    `parser:"| @@"`
	DropTable    *DropTable    `parser:"| @@"`
	Rename       *Rename       `parser:"| @@"`
	Alter        *Alter        `parser:"| @@"`
	Analyze      *Analyze      `parser:"| @@"`
	Comment      *Comment      `parser:"| @@"`
	Insert       *Insert       `parser:"| @@"`
	Truncate     *Truncate     `parser:"| @@"`
	Show         *Show         `parser:"| @@"`
	Describe     *Describe     `parser:"| @@"`
	Explain      *Explain      `parser:"| @@"`
	Use          *Use          `parser:"| @@"`
	SetSession   *SetSession   `parser:"| @@"`
	ResetSession *ResetSession `parser:"| @@"`
	Call         *Call         `parser:"| @@"`
}

// CreateSchema is CREATE SCHEMA.
type CreateSchema struct {
	IfNotExists bool          `parser:"'CREATE' 'SCHEMA' @( 'IF' 'NOT' 'EXISTS' )?"`
	Name        QualifiedName `parser:"@@"`
}

// DropSchema is DROP SCHEMA.
type DropSchema struct {
	IfExists bool          `parser:"'DROP' 'SCHEMA' @( 'IF' 'EXISTS' )?"`
	Name     QualifiedName `parser:"@@"`
	Cascade  bool          `parser:"( @'CASCADE' | 'RESTRICT' )?"`
}

// CreateTable is CREATE TABLE, with columns, as a query, or both.
type CreateTable struct {
	OrReplace   bool          `parser:"'CREATE' @( 'OR' 'REPLACE' )? 'TABLE'"`
	IfNotExists bool          `parser:"@( 'IF' 'NOT' 'EXISTS' )?"`
	Name        QualifiedName `parser:"@@"`
	Elements    []Element     `parser:"( '(' @@ ( ',' @@ )* ')' )?"`
	Comment     *Literal      `parser:"( 'COMMENT' @String )?"`
	Properties  []Property    `parser:"( 'WITH' '(' ( @@ ( ',' @@ )* )? ')' )?"`
	As          *Text         `parser:"( 'AS' @@ )?"`
	// NoData is set by CREATE TABLE AS ... WITH NO DATA.
	NoData bool
}

// Element is a column, or a table constraint.
type Element struct {
	PrimaryKey []Name  `parser:"  'PRIMARY' 'KEY' '(' @(Ident|Quoted) ( ',' @(Ident|Quoted) )* ')'"`
	Column     *Column `parser:"| @@"`
}

// Column is one column definition; CREATE TABLE t (a, b) AS has no types.
type Column struct {
	Name    Name           `parser:"@(Ident|Quoted)"`
	Type    *Type          `parser:"@@?"`
	Options []ColumnOption `parser:"@@*"`
}

// ColumnOption is what may follow a column's type, in any order.
type ColumnOption struct {
	NotNull    bool     `parser:"  @( 'NOT' 'NULL' )"`
	Null       bool     `parser:"| @'NULL'"`
	Default    *Default `parser:"| 'DEFAULT' @@"`
	Comment    *Literal `parser:"| 'COMMENT' @String"`
	PrimaryKey bool     `parser:"| @( 'PRIMARY' 'KEY' )"`
}

// Type is a type name as written.
type Type struct {
	Name    Name   `parser:"(?! 'NOT' | 'NULL' | 'DEFAULT' | 'COMMENT' | 'PRIMARY' ) @(Ident|Quoted)"`
	Second  string `parser:"@( 'PRECISION' | 'VARYING' )?"`
	Args    []int  `parser:"( '(' @Integer ( ',' @Integer )* ')' )?"`
	Zone    string `parser:"( @( 'WITH' | 'WITHOUT' ) ('LOCAL')? 'TIME' 'ZONE' )?"`
	IsArray bool   `parser:"@( '[' Integer? ']' )*"`
}

// String writes the type in upper case with its arguments.
func (t Type) String() string {
	var b strings.Builder
	b.WriteString(strings.ToUpper(string(t.Name)))
	if t.Second != "" {
		b.WriteString(" " + strings.ToUpper(t.Second))
	}
	for i, a := range t.Args {
		b.WriteString([]string{"(", ","}[min(i, 1)] + strconv.Itoa(a))
	}
	if len(t.Args) > 0 {
		b.WriteByte(')')
	}
	if t.Zone != "" {
		b.WriteString(" " + strings.ToUpper(t.Zone) + " TIME ZONE")
	}
	if t.IsArray {
		b.WriteString("[]")
	}
	return b.String()
}

// Property is one entry of WITH (...).
type Property struct {
	Name  Name  `parser:"@(Ident|Quoted) '='"`
	Value Value `parser:"@@"`
}

// Value is a property's value: an array of scalars or one scalar.
type Value struct {
	Array  *Array  `parser:"  @@"`
	Scalar *Scalar `parser:"| @@"`
}

// Array is ARRAY[...] or [...].
type Array struct {
	Items []Scalar `parser:"'ARRAY'? '[' ( @@ ( ',' @@ )* )? ']'"`
}

// Scalar is a string, a number or a word such as true.
type Scalar struct {
	String *Literal `parser:"  @String"`
	Number *string  `parser:"| @( '-'? (Integer|Number) )"`
	Word   *Name    `parser:"| @(Ident|Quoted)"`
}

// Text gives the scalar's value as text.
func (s Scalar) Text() string {
	switch {
	case s.String != nil:
		return string(*s.String)
	case s.Number != nil:
		return *s.Number
	case s.Word != nil:
		return string(*s.Word)
	}
	return ""
}

// DropTable is DROP TABLE.
type DropTable struct {
	IfExists bool          `parser:"'DROP' 'TABLE' @( 'IF' 'EXISTS' )?"`
	Name     QualifiedName `parser:"@@"`
}

// Rename is ALTER TABLE ... RENAME TO.
type Rename struct {
	IfExists bool          `parser:"'ALTER' 'TABLE' @( 'IF' 'EXISTS' )?"`
	Name     QualifiedName `parser:"@@"`
	To       QualifiedName `parser:"'RENAME' 'TO' @@"`
}

// Insert is INSERT INTO and INSERT OVERWRITE.
type Insert struct {
	Overwrite bool          `parser:"'INSERT' ( 'INTO' 'TABLE'? | @'OVERWRITE' ( 'INTO' | 'TABLE' )? )"`
	Table     QualifiedName `parser:"@@"`
	Columns   []Name        `parser:"( '(' @(Ident|Quoted) ( ',' @(Ident|Quoted) )* ')' )?"`
	Query     Text          `parser:"@@"`
}

// Truncate is TRUNCATE TABLE.
type Truncate struct {
	Table QualifiedName `parser:"'TRUNCATE' 'TABLE'? @@"`
}

// Show is every SHOW statement; What is in upper case.
type Show struct {
	What string         `parser:"'SHOW' ( @( 'SCHEMAS' | 'TABLES' | 'JOBS' | 'QUERIES' | 'SESSION' | 'CATALOGS' )"`
	From *QualifiedName `parser:"        ( ( 'FROM' | 'IN' ) @@ )?"`
	Like *Literal       `parser:"        ( 'LIKE' @String )?"`
	Of   string         `parser:"| @( 'COLUMNS' | 'PARTS' | 'INDEXES' | 'STATS' | 'CREATE' )"`
	// Query is what SHOW STATS FOR (query) asks about, in place of Table.
	Query       *Text          `parser:"  ( ( 'FOR' (?= '(' ) @@ )"`
	Table       *QualifiedName `parser:"  | ( 'FROM' | 'IN' | 'FOR' | 'TABLE' ) @@ )"`
	LikeColumns *Literal       `parser:"  ( 'LIKE' @String )? )"`
}

// Describe is DESCRIBE [TABLE] t.
type Describe struct {
	Table QualifiedName `parser:"( 'DESCRIBE' | 'DESC' ) ( 'TABLE' (?= Ident | Quoted ) )? @@"`
}

// Explain is EXPLAIN [ANALYZE] statement.
type Explain struct {
	Analyze   bool `parser:"'EXPLAIN' @'ANALYZE'?"`
	Statement Text `parser:"@@"`
}

// Use is USE [catalog.]schema.
type Use struct {
	Schema QualifiedName `parser:"'USE' @@"`
}

// SetSession is SET SESSION name = value.
type SetSession struct {
	Name  QualifiedName `parser:"'SET' 'SESSION' @@ '='"`
	Value Scalar        `parser:"@@"`
}

// ResetSession is RESET SESSION name.
type ResetSession struct {
	Name QualifiedName `parser:"'RESET' 'SESSION' @@"`
}

// Call is CALL [memory.]system.procedure(arguments).
type Call struct {
	Procedure QualifiedName `parser:"'CALL' @@"`
	Arguments []Argument    `parser:"'(' ( @@ ( ',' @@ )* )? ')'"`
}

// Argument is a name or a literal.
type Argument struct {
	Name   *QualifiedName `parser:"  @@"`
	Scalar *Scalar        `parser:"| @@"`
}
