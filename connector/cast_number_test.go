package connector

import (
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/decimal256"
	"github.com/stretchr/testify/require"
)

func TestRescaleRefusesWhatDoesNotFit(t *testing.T) {
	number := func(text string, scale int32) decimal256.Num {
		v, err := decimal256.FromString(text, 76, scale)
		require.NoError(t, err)
		return v
	}
	wide := func(precision, scale int32) arrow.DecimalType {
		return &arrow.Decimal256Type{Precision: precision, Scale: scale}
	}
	narrow := func(precision, scale int32) arrow.DecimalType {
		return &arrow.Decimal128Type{Precision: precision, Scale: scale}
	}
	for name, test := range map[string]struct {
		value  decimal256.Num
		scale  int32
		target arrow.DecimalType
		want   string // empty: refused
	}{
		"beyond 256 bits":   {number("1e75", 0), 0, narrow(38, 38), ""},
		"beyond precision":  {number("10", 0), 0, narrow(3, 2), ""},
		"no room at all":    {number("1", 0), 0, narrow(2, 2), ""},
		"negative":          {number("-9.99", 2), 2, wide(5, 4), "-9.9900"},
		"widest":            {number("1", 0), 0, wide(76, 75), "1." + zeros(75)},
		"loses a digit":     {number("1.05", 2), 2, narrow(38, 1), ""},
		"loses only zeroes": {number("1.50", 2), 2, narrow(38, 1), "1.5"},
		"zero":              {number("0", 0), 0, narrow(38, 38), "0." + zeros(38)},
	} {
		t.Run(name, func(t *testing.T) {
			got, why := rescale(test.value, test.scale, test.target)
			if test.want == "" {
				require.NotEmpty(t, why, got.ToString(test.target.GetScale()))
				return
			}
			require.Empty(t, why)
			require.Equal(t, test.want, got.ToString(test.target.GetScale()))
		})
	}
}

func zeros(n int) string {
	out := make([]byte, n)
	for i := range out {
		out[i] = '0'
	}
	return string(out)
}
