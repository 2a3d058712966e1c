package duck

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"unicode/utf8"
)

// Unparse gives the text of a tree with one statement. The text parses into the same tree: DuckDB writes a DOUBLE such
// as 5e0 as 5.0, which would come back as a DECIMAL, so those constants are written here, with an exponent.
func (db *DB) Unparse(ctx context.Context, tree []byte) (string, error) {
	if !utf8.Valid(tree) {
		return "", errors.New("unparse: the tree is not valid UTF-8")
	}
	tree, marker, err := markDoubles(tree)
	if err != nil {
		return "", fmt.Errorf("unparse: %w", err)
	}
	var text string
	err = db.withParser(ctx, func(p *parser) (err error) {
		text, err = p.call(ctx, p.deserialize, string(tree))
		return err
	})
	if err != nil {
		return "", fmt.Errorf("unparse: %w", err)
	}
	if marker != "" {
		text = regexp.MustCompile(`'`+marker+`([0-9.e+-]+)'`).ReplaceAllString(text, "$1")
	}
	return text, nil
}

var doubleMark = []byte(`"DOUBLE"`)

// markDoubles makes strings of the DOUBLE constants: a marker that the tree does not hold anywhere else, and the number
// with its exponent. The marker is empty when the tree has no such constant.
func markDoubles(tree []byte) (marked []byte, marker string, err error) {
	if !bytes.Contains(tree, doubleMark) {
		return tree, "", nil
	}
	decoder := json.NewDecoder(bytes.NewReader(tree))
	decoder.UseNumber()
	var root any
	if err := decoder.Decode(&root); err != nil {
		return nil, "", fmt.Errorf("read the tree: %w", err)
	}
	for n := 0; marker == "" || bytes.Contains(tree, []byte(marker)); n++ {
		marker = "memconn_double_" + strconv.Itoa(n) + "_"
	}
	if !walkDoubles(root, marker) {
		return tree, "", nil
	}
	if marked, err = json.Marshal(root); err != nil {
		return nil, "", fmt.Errorf("write the tree: %w", err)
	}
	return marked, marker, nil
}

// walkDoubles marks the constants below a node and says whether there are any.
func walkDoubles(node any, marker string) bool {
	found := false
	switch n := node.(type) {
	case []any:
		for _, child := range n {
			found = walkDoubles(child, marker) || found
		}
	case map[string]any:
		if n["type"] == "VALUE_CONSTANT" && markDouble(n, marker) {
			return true
		}
		for _, child := range n {
			found = walkDoubles(child, marker) || found
		}
	}
	return found
}

func markDouble(constant map[string]any, marker string) bool {
	value, _ := constant["value"].(map[string]any)
	kind, _ := value["type"].(map[string]any)
	number, ok := value["value"].(json.Number)
	if !ok || kind["id"] != "DOUBLE" {
		return false
	}
	f, err := number.Float64()
	if err != nil {
		return false
	}
	constant["value"] = map[string]any{
		"type": map[string]any{"id": "VARCHAR", "type_info": nil}, "is_null": false,
		"value": marker + strconv.FormatFloat(f, 'e', -1, 64),
	}
	return true
}
