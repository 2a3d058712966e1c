package grammar

import (
	"strings"

	"github.com/alecthomas/participle/v2"
	"github.com/alecthomas/participle/v2/lexer"
)

// CreateCube is CREATE CUBE. Parse checks that AGGREGATIONS and GROUP are there, and
// that none of AGGREGATIONS, GROUP and FILTER is there twice.
type CreateCube struct {
	IfNotExists bool           `parser:"'CREATE' 'CUBE' @( 'IF' 'NOT' 'EXISTS' )?"`
	Name        QualifiedName  `parser:"@@"`
	Table       QualifiedName  `parser:"'ON' @@"`
	Options     []CubeProperty `parser:"'WITH' '(' @@ ( ',' @@ )* ')'"`
	Where       *Text          `parser:"( 'WHERE' @@ )?"`
}

// CubeProperty is one entry of the WITH clause of CREATE CUBE; one field is set.
type CubeProperty struct {
	Aggregations *CubeAggregations `parser:"  'AGGREGATIONS' '=' @@"`
	Group        *CubeGroup        `parser:"| 'GROUP' '=' @@"`
	Filter       *Enclosed         `parser:"| 'FILTER' '=' @@"`
	Property     *Property         `parser:"| @@"`
}

// CubeAggregations is the list after AGGREGATIONS.
type CubeAggregations struct {
	Items []CubeAggregate `parser:"'(' @@ ( ',' @@ )* ')'"`
}

// CubeAggregate is function([DISTINCT] argument, ...); an argument that is * or a
// number stands for all rows.
type CubeAggregate struct {
	Function  Name           `parser:"@(Ident|Quoted)"`
	Outside   bool           `parser:"@'DISTINCT'? '('"` // count distinct(x), as openLooKeng's documents write
	Distinct  bool           `parser:"@'DISTINCT'?"`
	Arguments []CubeArgument `parser:"( @@ ( ',' @@ )* )? ')'"`
}

// CubeArgument is a column, * or a whole number.
type CubeArgument struct {
	All    bool    `parser:"  @'*'"`
	Number *string `parser:"| @Integer"`
	Column *Name   `parser:"| @(Ident|Quoted)"`
}

// CubeGroup is the list after GROUP, which may be empty.
type CubeGroup struct {
	Items []CubeDimension `parser:"'(' ( @@ ( ',' @@ )* )? ')'"`
}

// CubeDimension is a column or date_trunc('unit', column).
type CubeDimension struct {
	Function *Name    `parser:"( @(Ident|Quoted) '('"`
	Unit     *Literal `parser:"  @String ','"`
	Argument *Name    `parser:"  @(Ident|Quoted) ')' )"`
	Column   *Name    `parser:"| @(Ident|Quoted)"`
}

// Enclosed is an expression in parentheses, which are not part of the text.
type Enclosed struct{ Text }

// Parse is participle's hook: it takes a parenthesis up to the one that closes it.
func (e *Enclosed) Parse(lex *lexer.PeekingLexer) error {
	if lex.Peek().Value != "(" {
		return participle.NextMatch
	}
	lex.Next()
	first := lex.Peek()
	e.Start, e.End = first.Pos.Offset, first.Pos.Offset
	for depth := 0; depth >= 0; {
		t := lex.Peek()
		if t.EOF() {
			return nil // the end is what the grammar does not expect
		}
		if t.Type == symbols["Punct"] {
			switch t.Value {
			case "(":
				depth++
			case ")":
				depth--
			}
		}
		lex.Next()
		if depth >= 0 {
			e.End = t.Pos.Offset + len(t.Value)
		}
	}
	return nil
}

// InsertCube is INSERT INTO CUBE and INSERT OVERWRITE CUBE.
type InsertCube struct {
	Overwrite bool          `parser:"'INSERT' ( 'INTO' | @'OVERWRITE' 'INTO'? ) 'CUBE'"`
	Name      QualifiedName `parser:"@@"`
	Where     *Text         `parser:"( 'WHERE' @@ )?"`
}

// ReloadCube is RELOAD CUBE.
type ReloadCube struct {
	IfExists bool          `parser:"'RELOAD' 'CUBE' @( 'IF' 'EXISTS' )?"`
	Name     QualifiedName `parser:"@@"`
}

// DropCube is DROP CUBE.
type DropCube struct {
	IfExists bool          `parser:"'DROP' 'CUBE' @( 'IF' 'EXISTS' )?"`
	Name     QualifiedName `parser:"@@"`
}

// ShowCubes is SHOW CUBES [FOR t] and SHOW CREATE CUBE c.
type ShowCubes struct {
	Create *QualifiedName `parser:"'SHOW' ( 'CREATE' 'CUBE' @@"`
	For    *QualifiedName `parser:"       | 'CUBES' ( ( 'FOR' | 'FROM' ) @@ )? )"`
}

// finishCube cuts out the texts of the statements about cubes and checks what the
// grammar can't.
func finishCube(st *Statement, text string) (*Statement, error) {
	if st.InsertCube != nil {
		st.InsertCube.Where.fill(text)
		return st, nil
	}
	c := st.CreateCube
	c.Where.fill(text)
	seen := map[string]bool{}
	once := func(name, shown string) error {
		if seen[name] {
			return &SyntaxError{Message: shown + name}
		}
		seen[name] = true
		return nil
	}
	for i := range c.Options {
		o := &c.Options[i]
		var err error
		switch {
		case o.Aggregations != nil:
			err = once("AGGREGATIONS", "Duplicate property: ")
		case o.Group != nil:
			err = once("GROUP", "Duplicate property: ")
		case o.Filter != nil:
			o.Filter.fill(text)
			if err = once("FILTER", "Duplicate Property: "); err == nil && o.Filter.Value == "" {
				err = &SyntaxError{Message: "expected a condition in FILTER", Offset: o.Filter.Start}
			}
		default:
			err = once(strings.ToLower(string(o.Property.Name)), "Duplicate property: ")
		}
		if err != nil {
			return nil, err
		}
	}
	for _, name := range []string{"AGGREGATIONS", "GROUP"} {
		if !seen[name] {
			return nil, &SyntaxError{Message: "Missing property: " + name}
		}
	}
	return st, nil
}
