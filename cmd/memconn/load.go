package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/flight"
	"github.com/apache/arrow-go/v18/arrow/flight/flightsql"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"
	"golang.org/x/term"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/memconn/memconn/api/fileformat"
)

// loadModes are the modes of Flight SQL bulk ingest by their names: what to do
// with a table that is not there, and with one that is.
var loadModes = map[string]struct {
	missing flightsql.TableDefinitionOptionsTableNotExistOption
	present flightsql.TableDefinitionOptionsTableExistsOption
}{
	"create":        {flightsql.TableDefinitionOptionsTableNotExistOptionCreate, flightsql.TableDefinitionOptionsTableExistsOptionFail},
	"append":        {flightsql.TableDefinitionOptionsTableNotExistOptionFail, flightsql.TableDefinitionOptionsTableExistsOptionAppend},
	"replace":       {flightsql.TableDefinitionOptionsTableNotExistOptionCreate, flightsql.TableDefinitionOptionsTableExistsOptionReplace},
	"create_append": {flightsql.TableDefinitionOptionsTableNotExistOptionCreate, flightsql.TableDefinitionOptionsTableExistsOptionAppend},
}

// loadOptions are the flags of load.
type loadOptions struct {
	table, mode, format         string
	server                      serverFlags
	sortedBy, index, primaryKey []string
	delimiter                   string
	quiet                       bool
}

func loadCommand() *cobra.Command {
	var o loadOptions
	cmd := &cobra.Command{
		Use:   "load FILE... --table [SCHEMA.]TABLE",
		Short: "Load Parquet, CSV, NDJSON or Arrow files into a table, in one atomic commit",
		Example: `  memconn load flights.parquet --table flights --sorted-by origin,date --index destination
  memconn load day1.csv day2.csv --table events --mode append
  zcat big.csv.gz | memconn load - --format csv --table big`,
		Args: atLeast(1, "at least one file"),
		RunE: func(cmd *cobra.Command, files []string) error {
			if o.table == "" {
				return usagef("--table is missing: name the table to load into")
			}
			if _, known := loadModes[o.mode]; !known {
				return usagef("unknown mode %q; known are append, create, create_append, replace", o.mode)
			}
			return load(cmd.Context(), files, o, cmd.OutOrStdout())
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.table, "table", "", "table to load into, [schema.]table")
	flags.StringVar(&o.mode, "mode", "create", "create (fails when the table is there), append (fails when it is not), replace (by a new table), create_append")
	flags.StringVar(&o.format, "format", "", "arrow, arrow_file, parquet, csv or ndjson (default: by the file's extension)")
	flags.StringVar(&o.delimiter, "delimiter", "", "field delimiter of CSV files (default: comma, tab for .tsv)")
	flags.StringSliceVar(&o.sortedBy, "sorted-by", nil, "sort columns of a new table, as a,'b DESC NULLS FIRST'")
	flags.StringSliceVar(&o.index, "index", nil, "columns of a new table that get Bloom filters")
	flags.StringSliceVar(&o.primaryKey, "primary-key", nil, "primary key of a new table (servers of this version refuse it)")
	flags.BoolVarP(&o.quiet, "quiet", "q", false, "no progress bar")
	o.server.add(cmd)
	return cmd
}

// load sends every file as one ingest: either all rows of all files are there
// afterwards, or none.
func load(ctx context.Context, files []string, o loadOptions, out io.Writer) error {
	inputs, total, err := openInputs(files, o)
	defer func() {
		for _, in := range inputs {
			in.file.Close()
		}
	}()
	if err != nil {
		return err
	}
	c, err := dial(o.server)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	options := ingestOptions(o)
	if err := readAsTable(ctx, c, inputs, options); err != nil {
		return fmt.Errorf("nothing was loaded: %w", err)
	}
	bar := progress(total, o.quiet)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	reader, err := newFilesReader(inputs, bar, cancel)
	if err != nil {
		return err
	}
	defer reader.Release()
	begin := time.Now()
	rows, err := c.ExecuteIngest(ctx, reader, options)
	_ = bar.Exit()
	if failure := reader.Err(); failure != nil { // the cause; what the server saw is its echo
		return fmt.Errorf("nothing was loaded: %w", failure)
	}
	if err != nil {
		return fmt.Errorf("nothing was loaded: %w", c.explain(err))
	}
	elapsed := time.Since(begin)
	fmt.Fprintf(out, "loaded %s into %s in %s (%.0f rows/s)\n", plural(rows, "row"), o.table,
		elapsed.Round(time.Millisecond), float64(rows)/max(elapsed.Seconds(), 1e-9))
	return nil
}

// readAsTable makes files of texts be read as the types of the table that they are appended to: "007" stays a text where the column is one.
// Without such a table, types are inferred from the files.
func readAsTable(ctx context.Context, c *client, inputs []input, o *flightsql.ExecuteIngestOpts) error {
	texts := slices.ContainsFunc(inputs, func(in input) bool { return in.format == fileformat.CSV || in.format == fileformat.NDJSON })
	if !texts || o.TableDefinitionOptions.IfExists != flightsql.TableDefinitionOptionsTableExistsOptionAppend {
		return nil
	}
	path := []string{o.Table}
	if o.Schema != nil {
		path = []string{*o.Schema, o.Table}
	}
	result, err := c.Client.Client.GetSchema(ctx, &flight.FlightDescriptor{Type: flight.DescriptorPATH, Path: path})
	if status.Code(err) == codes.NotFound {
		return nil // the ingest makes it, or says that it is not there
	}
	if err != nil {
		return c.explain(err)
	}
	schema, err := flight.DeserializeSchema(result.GetSchema(), memory.DefaultAllocator)
	if err != nil {
		return fmt.Errorf("the schema of table %s: %w", o.Table, err)
	}
	for i := range inputs {
		inputs[i].options.Schema = schema
	}
	return nil
}

// ingestOptions says what to do with a table that is there and one that is not.
func ingestOptions(o loadOptions) *flightsql.ExecuteIngestOpts {
	mode := loadModes[o.mode]
	definition := &flightsql.TableDefinitionOptions{IfNotExist: mode.missing, IfExists: mode.present}
	options := &flightsql.ExecuteIngestOpts{TableDefinitionOptions: definition, Table: o.table, Options: map[string]string{}}
	if schema, table, qualified := strings.Cut(o.table, "."); qualified {
		options.Schema, options.Table = &schema, table
	}
	for key, columns := range map[string][]string{"memconn.sorted_by": o.sortedBy, "memconn.index_columns": o.index, "memconn.primary_key": o.primaryKey} {
		if len(columns) > 0 {
			options.Options[key] = strings.Join(columns, ",")
		}
	}
	return options
}

// input is one opened file and how to read it.
type input struct {
	name    string
	file    *os.File
	format  fileformat.Format
	options fileformat.Options
}

// openInputs opens every file before anything is sent, so that a misspelt name
// is known at once. The inputs opened so far are returned with an error too.
func openInputs(files []string, o loadOptions) ([]input, int64, error) {
	var inputs []input
	var total int64
	for _, name := range files {
		in := input{name: name}
		if err := in.choose(o); err != nil {
			return inputs, 0, err
		}
		f := os.Stdin
		if name != "-" {
			var err error
			if f, err = os.Open(name); err != nil {
				return inputs, 0, err
			}
		}
		in.file = f
		inputs = append(inputs, in)
		info, err := f.Stat()
		switch {
		case err != nil:
			return inputs, 0, err
		case info.IsDir():
			return inputs, 0, fmt.Errorf("%s is a directory; name its files", name)
		case !info.Mode().IsRegular():
			total = -1 // a pipe: its size is not known
		case total >= 0:
			total += info.Size()
		}
	}
	return inputs, total, nil
}

// choose finds the file's format and dialect.
func (in *input) choose(o loadOptions) error {
	known := false
	if o.format != "" {
		format, err := fileformat.ParseFormat(o.format)
		if err != nil {
			return usageError{err}
		}
		in.format = format
	} else if in.format, known = fileformat.FromFileName(in.name); !known {
		return usagef("%s: the extension tells no format; say --format arrow, arrow_file, parquet, csv or ndjson (a JSON array becomes NDJSON by: jq -c '.[]')", in.name)
	}
	if strings.HasSuffix(strings.ToLower(in.name), ".tsv") {
		in.options.CSV.Delimiter = '\t'
	}
	switch d := strings.ReplaceAll(o.delimiter, `\t`, "\t"); len(d) {
	case 0:
	case 1:
		in.options.CSV.Delimiter = d[0]
	default:
		return usagef("--delimiter is one character, got %q", o.delimiter)
	}
	return nil
}

// progress is a bar on a terminal and nothing elsewhere.
func progress(total int64, quiet bool) *progressbar.ProgressBar {
	if quiet || !term.IsTerminal(int(os.Stderr.Fd())) {
		return progressbar.DefaultBytesSilent(total)
	}
	return progressbar.NewOptions64(total,
		progressbar.OptionSetWriter(os.Stderr), progressbar.OptionShowBytes(true), progressbar.OptionSetDescription("loading"),
		progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionClearOnFinish(), progressbar.OptionSetPredictTime(true))
}

// filesReader is one record reader over several files of one schema. When a
// file breaks, it cancels the load before it ends, so that the server never
// takes the rows before the fault for the whole.
type filesReader struct {
	array.RecordReader
	rest   []input
	bar    *progressbar.ProgressBar
	cancel context.CancelFunc
	name   string
	err    error
	// A stream without a batch would not reach the server at all, so the table
	// of an empty file is told by one empty batch.
	sent  bool
	empty arrow.RecordBatch
}

func newFilesReader(inputs []input, bar *progressbar.ProgressBar, cancel context.CancelFunc) (*filesReader, error) {
	r := &filesReader{rest: inputs, bar: bar, cancel: cancel}
	if err := r.open(); err != nil {
		return nil, err
	}
	return r, nil
}

// open starts the next file and checks that its columns are those of the first.
func (r *filesReader) open() error {
	in := r.rest[0]
	r.rest = r.rest[1:]
	next, err := fileformat.Open(in.format, io.TeeReader(in.file, r.bar), in.options)
	if err != nil {
		return fmt.Errorf("%s: %w", in.name, err)
	}
	if r.RecordReader != nil {
		if first := r.Schema(); !next.Schema().Equal(first) {
			defer next.Release()
			return fmt.Errorf("%s has other columns than %s: %s, not %s", in.name, r.name, next.Schema(), first)
		}
		r.RecordReader.Release()
	} else {
		r.name = in.name
	}
	r.RecordReader = next
	return nil
}

// Next moves to the next batch, over the ends of files.
func (r *filesReader) Next() bool {
	for r.err == nil {
		if r.RecordReader.Next() {
			r.sent = true
			return true
		}
		if err := r.RecordReader.Err(); err != nil {
			r.err = fmt.Errorf("%s: %w", r.name, err)
		} else if len(r.rest) == 0 {
			return r.lastBatch()
		} else {
			r.err = r.open()
		}
	}
	r.cancel()
	return false
}

// lastBatch gives the empty batch of a load without rows, once.
func (r *filesReader) lastBatch() bool {
	if r.empty != nil {
		r.empty.Release()
		r.empty = nil
	}
	if r.sent {
		return false
	}
	r.sent = true
	builder := array.NewRecordBuilder(memory.DefaultAllocator, r.Schema())
	defer builder.Release()
	r.empty = builder.NewRecordBatch()
	return true
}

// RecordBatch is the current batch, valid until Next.
func (r *filesReader) RecordBatch() arrow.RecordBatch {
	if r.empty != nil {
		return r.empty
	}
	return r.RecordReader.RecordBatch()
}

// Err tells why Next ended early.
func (r *filesReader) Err() error { return r.err }
