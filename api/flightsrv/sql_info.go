package flightsrv

import (
	"context"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/flight"
	"github.com/apache/arrow-go/v18/arrow/flight/flightsql"
	"github.com/apache/arrow-go/v18/arrow/flight/flightsql/schema_ref"
)

// registerSQLInfo fills in every SqlInfo code. The Go type chooses the slot of the answer's union, and drivers cast:
// counts and lengths are int64, enums and bit masks int32, the default isolation int64 although it is an enum.
func (s *sqlServer) registerSQLInfo() error {
	for _, group := range []map[flightsql.SqlInfo]any{s.serverInfo(), syntaxInfo(), supportInfo(), limitInfo(), transactionInfo()} {
		for id, value := range group {
			if err := s.RegisterSqlInfo(id, value); err != nil {
				return fmt.Errorf("register SqlInfo %d: %w", id, err)
			}
		}
	}
	return nil
}

func (s *sqlServer) serverInfo() map[flightsql.SqlInfo]any {
	return map[flightsql.SqlInfo]any{
		flightsql.SqlInfoFlightSqlServerName:                        "memconn",
		flightsql.SqlInfoFlightSqlServerVersion:                     s.o.Version,
		flightsql.SqlInfoFlightSqlServerArrowVersion:                arrow.PkgVersion,
		flightsql.SqlInfoFlightSqlServerReadOnly:                    false,
		flightsql.SqlInfoFlightSqlServerSql:                         true,
		flightsql.SqlInfoFlightSqlServerSubstrait:                   false,
		flightsql.SqlInfoFlightSqlServerSubstraitMinVersion:         "",
		flightsql.SqlInfoFlightSqlServerSubstraitMaxVersion:         "",
		flightsql.SqlInfoFlightSqlServerTransaction:                 int32(flightsql.SqlTransactionNone),
		flightsql.SqlInfoFlightSqlServerCancel:                      true,
		flightsql.SqlInfoFlightSqlServerBulkIngestion:               true,
		flightsql.SqlInfoFlightSqlServerIngestTransactionsSupported: false,
		flightsql.SqlInfoFlightSqlServerStatementTimeout:            int32(0),
		flightsql.SqlInfoFlightSqlServerTransactionTimeout:          int32(0),
	}
}

func syntaxInfo() map[flightsql.SqlInfo]any {
	return map[flightsql.SqlInfo]any{
		flightsql.SqlInfoDDLCatalog:              false,
		flightsql.SqlInfoDDLSchema:               true,
		flightsql.SqlInfoDDLTable:                true,
		flightsql.SqlInfoIdentifierCase:          int32(flightsql.SqlCaseSensitivityCaseInsensitive),
		flightsql.SqlInfoIdentifierQuoteChar:     `"`,
		flightsql.SqlInfoQuotedIdentifierCase:    int32(flightsql.SqlCaseSensitivityCaseInsensitive),
		flightsql.SqlInfoAllTablesAreASelectable: true,
		flightsql.SqlInfoNullOrdering:            int32(flightsql.SqlNullOrderingSortAtEnd),
		flightsql.SqlInfoKeywords: []string{
			"ANALYZE", "CUBE", "EXCLUDE", "FILTER", "ILIKE", "LIMIT", "MACRO", "OFFSET", "OVERWRITE",
			"PIVOT", "QUALIFY", "RELOAD", "SAMPLE", "SEMI", "ANTI", "ASOF", "SHOW", "SUMMARIZE", "UNPIVOT", "USE",
		},
		flightsql.SqlInfoNumericFunctions: []string{
			"abs", "acos", "asin", "atan", "atan2", "ceil", "cos", "cot", "degrees", "exp",
			"floor", "ln", "log", "log10", "mod", "pi", "power", "radians", "random", "round", "sign", "sin", "sqrt", "tan", "trunc",
		},
		flightsql.SqlInfoStringFunctions: []string{
			"ascii", "chr", "concat", "contains", "left", "length", "lower", "lpad", "ltrim",
			"position", "regexp_matches", "regexp_replace", "repeat", "replace", "reverse", "right", "rpad", "rtrim", "split_part",
			"starts_with", "substring", "trim", "upper",
		},
		flightsql.SqlInfoSystemFunctions: []string{"coalesce", "ifnull", "nullif", "typeof", "version"},
		flightsql.SqlInfoDateTimeFunctions: []string{
			"age", "current_date", "current_timestamp", "date_diff", "date_part", "date_trunc",
			"dayname", "extract", "last_day", "monthname", "now", "strftime", "strptime",
		},
		flightsql.SqlInfoSearchStringEscape: `\`,
		flightsql.SqlInfoExtraNameChars:     "",
		flightsql.SqlInfoSchemaTerm:         "schema",
		flightsql.SqlInfoProcedureTerm:      "procedure",
		flightsql.SqlInfoCatalogTerm:        "catalog",
		flightsql.SqlInfoCatalogAtStart:     true,
	}
}

// Bit masks and enums of FlightSql.proto that arrow-go does not name.
const (
	groupByUnrelatedAndBeyond = 1<<0 | 1<<1            // SqlSupportedGroupBy
	grammarAll                = 1<<0 | 1<<1 | 1<<2     // SupportedSqlGrammar: minimum, core, extended
	ansi92Entry               = 1 << 0                 // SupportedAnsi92SqlGrammarLevel
	outerJoinsFull            = 1<<1 | 1<<2            // SqlOuterJoinsSupportLevel: limited, full
	schemaActions             = 1<<1 | 1<<2            // SqlSupportedElementActions: in index and in privilege definitions
	subqueriesAll             = 1<<0 | 1<<1 | 1<<2 | 8 // SqlSupportedSubqueries: comparisons, exists, ins, quantifieds
	unionsBoth                = 1<<0 | 1<<1            // SqlSupportedUnions
	forwardOnly               = 1 << 1                 // SqlSupportedResultSetType
	readOnlyConcurrency       = 1 << 1                 // SqlSupportedResultSetConcurrency
	isolationNone             = 0                      // SqlTransactionIsolationLevel
)

func supportInfo() map[flightsql.SqlInfo]any {
	return map[flightsql.SqlInfo]any{
		flightsql.SqlInfoSupportsColumnAliasing:                              true,
		flightsql.SqlInfoNullPlusNullIsNull:                                  true,
		flightsql.SqlInfoSupportsConvert:                                     conversions(),
		flightsql.SqlInfoSupportsTableCorrelationNames:                       true,
		flightsql.SqlInfoSupportsDifferentTableCorrelationNames:              false,
		flightsql.SqlInfoSupportsExpressionsInOrderBy:                        true,
		flightsql.SqlInfoSupportsOrderByUnrelated:                            true,
		flightsql.SqlInfoSupportedGroupBy:                                    int32(groupByUnrelatedAndBeyond),
		flightsql.SqlInfoSupportsLikeEscapeClause:                            true,
		flightsql.SqlInfoSupportsNonNullableColumns:                          true,
		flightsql.SqlInfoSupportedGrammar:                                    int32(grammarAll),
		flightsql.SqlInfoANSI92SupportedLevel:                                int32(ansi92Entry),
		flightsql.SqlInfoSupportsIntegrityEnhancementFacility:                false,
		flightsql.SqlInfoOuterJoinsSupportLevel:                              int32(outerJoinsFull),
		flightsql.SqlInfoSchemasSupportedActions:                             int32(schemaActions),
		flightsql.SqlInfoCatalogsSupportedActions:                            int32(schemaActions),
		flightsql.SqlInfoSupportedPositionedCommands:                         int32(0),
		flightsql.SqlInfoSelectForUpdateSupported:                            false,
		flightsql.SqlInfoStoredProceduresSupported:                           false,
		flightsql.SqlInfoSupportedSubqueries:                                 int32(subqueriesAll),
		flightsql.SqlInfoCorrelatedSubqueriesSupported:                       true,
		flightsql.SqlInfoSupportedUnions:                                     int32(unionsBoth),
		flightsql.SqlInfoSupportedResultSetTypes:                             int32(forwardOnly),
		flightsql.SqlInfoBatchUpdatesSupported:                               true,
		flightsql.SqlInfoNamedParametersSupported:                            false,
		flightsql.SqlInfoLocatorsUpdateCopy:                                  false,
		flightsql.SqlInfoSupportedConcurrenciesForResultSetUnspecified:       int32(0),
		flightsql.SqlInfoSupportedConcurrenciesForResultSetForwardOnly:       int32(readOnlyConcurrency),
		flightsql.SqlInfoSupportedConcurrenciesForResultSetScrollSensitive:   int32(0),
		flightsql.SqlInfoSupportedConcurrenciesForResultSetScrollInsensitive: int32(0),
		flightsql.SqlInfoStoredFunctionsUsingCallSyntaxSupported:             false,
	}
}

// conversions says what CAST converts: everything to text and back, numbers among each other, dates among each other.
func conversions() map[int32][]int32 {
	numbers := []int32{
		int32(flightsql.SqlConvertTinyInt), int32(flightsql.SqlConvertSmallInt), int32(flightsql.SqlConvertInteger),
		int32(flightsql.SqlConvertBigInt), int32(flightsql.SqlConvertReal), int32(flightsql.SqlConvertFloat),
		int32(flightsql.SqlConvertDecimal), int32(flightsql.SqlConvertNumeric),
	}
	moments := []int32{int32(flightsql.SqlConvertDate), int32(flightsql.SqlConvertTimestamp)}
	text := int32(flightsql.SqlConvertVarchar)
	out := map[int32][]int32{
		int32(flightsql.SqlConvertBit):  append([]int32{text}, numbers...),
		int32(flightsql.SqlConvertTime): {text},
	}
	for _, n := range numbers {
		out[n] = append([]int32{text, int32(flightsql.SqlConvertBit)}, numbers...)
	}
	for _, m := range moments {
		out[m] = append([]int32{text}, moments...)
	}
	out[text] = append(append([]int32{
		text, int32(flightsql.SqlConvertBit), int32(flightsql.SqlConvertTime),
		int32(flightsql.SqlConvertVarbinary),
	}, numbers...), moments...)
	return out
}

// limitInfo: 0 means no limit, or none that is known.
func limitInfo() map[flightsql.SqlInfo]any {
	out := map[flightsql.SqlInfo]any{
		flightsql.SqlInfoMaxRowSizeIncludesBlobs: true,
		flightsql.SqlInfoMaxColumnNameLen:        int64(255),
		flightsql.SqlInfoDBSchemaNameLen:         int64(255),
		flightsql.SqlInfoMaxTableNameLen:         int64(255),
	}
	for _, id := range []flightsql.SqlInfo{
		flightsql.SqlInfoMaxBinaryLiteralLen, flightsql.SqlInfoMaxCharLiteralLen, flightsql.SqlInfoMaxColumnsInGroupBy,
		flightsql.SqlInfoMaxColumnsInIndex, flightsql.SqlInfoMaxColumnsInOrderBy, flightsql.SqlInfoMaxColumnsInSelect,
		flightsql.SqlInfoMaxColumnsInTable, flightsql.SqlInfoMaxConnections, flightsql.SqlInfoMaxCursorNameLen,
		flightsql.SqlInfoMaxIndexLen, flightsql.SqlInfoMaxProcedureNameLen, flightsql.SqlInfoMaxCatalogNameLen,
		flightsql.SqlInfoMaxRowSize, flightsql.SqlInfoMaxStatementLen, flightsql.SqlInfoMaxStatements,
		flightsql.SqlInfoMaxTablesInSelect, flightsql.SqlInfoMaxUsernameLen,
	} {
		out[id] = int64(0)
	}
	return out
}

func transactionInfo() map[flightsql.SqlInfo]any {
	return map[flightsql.SqlInfo]any{
		flightsql.SqlInfoDefaultTransactionIsolation:           int64(isolationNone),
		flightsql.SqlInfoTransactionsSupported:                 false,
		flightsql.SqlInfoSupportedTransactionsIsolationlevels:  int32(0),
		flightsql.SqlInfoDataDefinitionCausesTransactionCommit: false,
		flightsql.SqlInfoDataDefinitionsInTransactionsIgnored:  false,
		flightsql.SqlInfoSavePointsSupported:                   false,
	}
}

// wanted narrows a request to the codes there are, so that one unknown code does not fail the others.
type wanted struct{ ids []uint32 }

func (w wanted) GetInfo() []uint32 { return w.ids }

// DoGetSqlInfo answers the known ones of the requested codes, all codes when none is requested.
func (s *sqlServer) DoGetSqlInfo(ctx context.Context, cmd flightsql.GetSqlInfo) (*arrow.Schema, <-chan flight.StreamChunk, error) { //nolint:staticcheck // arrow-go's interface names it so
	if len(cmd.GetInfo()) == 0 {
		return s.BaseServer.DoGetSqlInfo(ctx, cmd)
	}
	var known wanted
	for _, id := range cmd.GetInfo() {
		if id <= 11 || id == 100 || id == 101 || id >= 500 && id <= 576 {
			known.ids = append(known.ids, id)
		}
	}
	if len(known.ids) == 0 {
		return schemaOnly()
	}
	return s.BaseServer.DoGetSqlInfo(ctx, known)
}

func schemaOnly() (*arrow.Schema, <-chan flight.StreamChunk, error) {
	return schema_ref.SqlInfo, chunks(), nil
}
