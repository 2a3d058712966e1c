package wire

import (
	"errors"
	"strconv"
	"strings"

	"github.com/memconn/memconn/connector"
)

// SetProperty sets a table property given as one text, lists separated by commas; names may be in double
// quotes.
func SetProperty(spec *connector.TableSpec, name, value string) error {
	list, err := splitList(value)
	if err != nil {
		return connector.Errorf(connector.CodeInvalidTableProperty, "property %s: %q is not a list", name, value)
	}
	switch strings.ToLower(name) {
	case "sorted_by":
		for _, text := range list {
			sort, err := connector.ParseSortSpec(text)
			if err != nil {
				return err
			}
			spec.SortedBy = append(spec.SortedBy, sort)
		}
	case "index_columns":
		spec.IndexColumns = names(list)
	case "partitioned_by":
		spec.PartitionedBy = names(list)
	case "primary_key":
		spec.PrimaryKey = names(list)
	case "spill_compression":
		spec.SpillCompression = strings.ToLower(value)
	case "async_processing":
		on, err := strconv.ParseBool(value)
		if err != nil {
			return connector.Errorf(connector.CodeInvalidTableProperty, "property async_processing: %q is not a boolean", value)
		}
		spec.AsyncProcessing = &on
	case "bloom_fpp":
		rate, err := strconv.ParseFloat(value, 64)
		if err != nil || !(rate > 0 && rate < 1) {
			return connector.Errorf(connector.CodeInvalidTableProperty, "property bloom_fpp: %q is not a number greater than 0 and less than 1", value)
		}
		spec.BloomFPP = rate
	case "comment":
		spec.Comment = value
	default:
		return connector.Errorf(connector.CodeInvalidTableProperty,
			"there is no table property %q: use sorted_by, index_columns, partitioned_by, primary_key, spill_compression, bloom_fpp, async_processing or comment", name)
	}
	return nil
}

// splitList cuts at commas outside double quotes; the quotes stay.
func splitList(text string) ([]string, error) {
	if strings.TrimSpace(text) == "" {
		return nil, nil
	}
	var list []string
	start, quoted := 0, false
	for i, c := range text {
		switch {
		case c == '"':
			quoted = !quoted
		case c == ',' && !quoted:
			list = append(list, strings.TrimSpace(text[start:i]))
			start = i + 1
		}
	}
	if quoted {
		return nil, errors.New("a quote is missing")
	}
	return append(list, strings.TrimSpace(text[start:])), nil
}

// names takes the quotes off a list of names; doubled ones stand for themselves.
func names(list []string) []string {
	out := make([]string, len(list))
	for i, name := range list {
		if len(name) >= 2 && name[0] == '"' && name[len(name)-1] == '"' {
			name = strings.ReplaceAll(name[1:len(name)-1], `""`, `"`)
		}
		out[i] = name
	}
	return out
}
