package grammar

// Alter is ALTER TABLE but for RENAME TO; exactly one of its actions is set.
type Alter struct {
	IfExists   bool          `parser:"'ALTER' 'TABLE' @( 'IF' 'EXISTS' )?"`
	Name       QualifiedName `parser:"@@"`
	Properties []Property    `parser:"( 'SET' 'PROPERTIES' @@ ( ',' @@ )*"`
	Add        *AddColumn    `parser:"| @@"`
	Drop       *DropColumn   `parser:"| @@"`
	Rename     *RenameColumn `parser:"| @@ )"`
}

// AddColumn is ADD [COLUMN] [IF NOT EXISTS] column.
type AddColumn struct {
	IfNotExists bool   `parser:"'ADD' 'COLUMN'? @( 'IF' 'NOT' 'EXISTS' )?"`
	Column      Column `parser:"@@"`
}

// DropColumn is DROP [COLUMN] [IF EXISTS] name.
type DropColumn struct {
	IfExists bool `parser:"'DROP' 'COLUMN'? @( 'IF' 'EXISTS' )?"`
	Name     Name `parser:"@(Ident|Quoted)"`
}

// RenameColumn is RENAME COLUMN [IF EXISTS] name TO name.
type RenameColumn struct {
	IfExists bool `parser:"'RENAME' 'COLUMN' @( 'IF' 'EXISTS' )?"`
	From     Name `parser:"@(Ident|Quoted) 'TO'"`
	To       Name `parser:"@(Ident|Quoted)"`
}

// CreateIndex is CREATE INDEX; the method may stand before ON or after the columns.
type CreateIndex struct {
	IfNotExists bool          `parser:"'CREATE' 'INDEX' @( 'IF' 'NOT' 'EXISTS' )?"`
	Name        QualifiedName `parser:"@@"`
	Method      *Name         `parser:"( 'USING' @(Ident|Quoted) )?"`
	Table       QualifiedName `parser:"'ON' @@"`
	Columns     []Name        `parser:"'(' @(Ident|Quoted) ( ',' @(Ident|Quoted) )* ')'"`
	Using       *Name         `parser:"( 'USING' @(Ident|Quoted) )?"`
}

// DropIndex is DROP INDEX.
type DropIndex struct {
	IfExists bool          `parser:"'DROP' 'INDEX' @( 'IF' 'EXISTS' )?"`
	Name     QualifiedName `parser:"@@"`
}

// Analyze is ANALYZE t.
type Analyze struct {
	Table QualifiedName `parser:"'ANALYZE' 'TABLE'? @@"`
}

// Comment is COMMENT ON TABLE t IS 'text' or NULL.
type Comment struct {
	Table QualifiedName `parser:"'COMMENT' 'ON' 'TABLE' @@ 'IS'"`
	Text  *Literal      `parser:"( @String | 'NULL' )"`
}
