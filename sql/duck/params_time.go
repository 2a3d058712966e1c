package duck

import (
	"fmt"
	"math"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	bindings "github.com/duckdb/duckdb-go-bindings"
)

const (
	microsPerDay = 24 * 60 * 60 * 1_000_000
	nanosPerDay  = microsPerDay * 1000
)

// unitNanos gives the nanoseconds of a unit.
func unitNanos(unit arrow.TimeUnit) int64 { return int64(unit.Multiplier()) }

// rescale converts a count of one unit to another; false when that is not exact.
func rescale(n int64, from, to arrow.TimeUnit) (int64, bool) {
	f, t := unitNanos(from), unitNanos(to)
	if f >= t {
		factor := f / t
		if n > math.MaxInt64/factor || n < math.MinInt64/factor {
			return 0, false
		}
		return n * factor, true
	}
	factor := t / f
	return n / factor, n%factor == 0
}

func timeOfDayValue(v TimeOfDay) (bindings.Value, error) {
	nanos, ok := rescale(v.Value, v.Unit, arrow.Nanosecond)
	if !ok || nanos < 0 || nanos > nanosPerDay {
		return bindings.Value{}, fmt.Errorf("the time %d%v is outside of a day", v.Value, v.Unit)
	}
	if nanos%1000 != 0 {
		return bindings.CreateTimeNS(bindings.NewTimeNS(nanos)), nil
	}
	return bindings.CreateTime(bindings.NewTime(nanos / 1000)), nil
}

// timestampValue makes a timestamp of the wanted unit if that is exact, else of its own. Whether it has a zone stays as
// the caller says, unless the statement wants the other.
func timestampValue(v Timestamp, want arrow.DataType) (bindings.Value, error) {
	if t, ok := want.(*arrow.TimestampType); ok {
		if n, exact := rescale(v.Value, v.Unit, t.Unit); exact && (t.TimeZone != "") == v.Zoned {
			return createTimestamp(n, t.Unit, v.Zoned), nil
		}
	}
	if v.Zoned {
		n, exact := rescale(v.Value, v.Unit, arrow.Microsecond)
		if !exact {
			return bindings.Value{}, fmt.Errorf("the timestamp %d%v with zone is not whole microseconds of 64 bits", v.Value, v.Unit)
		}
		return createTimestamp(n, arrow.Microsecond, true), nil
	}
	return createTimestamp(v.Value, v.Unit, false), nil
}

// createTimestamp makes a value; zoned ones must come in microseconds.
func createTimestamp(n int64, unit arrow.TimeUnit, zoned bool) bindings.Value {
	switch {
	case zoned:
		return bindings.CreateTimestampTZ(bindings.NewTimestamp(n))
	case unit == arrow.Second:
		return bindings.CreateTimestampS(bindings.NewTimestampS(n))
	case unit == arrow.Millisecond:
		return bindings.CreateTimestampMS(bindings.NewTimestampMS(n))
	case unit == arrow.Nanosecond:
		return bindings.CreateTimestampNS(bindings.NewTimestampNS(n))
	}
	return bindings.CreateTimestamp(bindings.NewTimestamp(n))
}

// goTimeValue makes an instant what the statement wants: a date (if it is midnight UTC), a timestamp with or without
// zone (UTC wall clock) of the unit that holds it, else a TIMESTAMPTZ.
func goTimeValue(v time.Time, want arrow.DataType) (bindings.Value, error) {
	v = v.UTC()
	micros, nanos := v.UnixMicro(), v.Nanosecond()
	if v.Year() < -200_000 || v.Year() > 200_000 {
		return bindings.Value{}, fmt.Errorf("the year %d does not fit microseconds of 64 bits", v.Year())
	}
	switch t := want.(type) {
	case *arrow.Date32Type:
		if nanos == 0 && micros%microsPerDay == 0 {
			return bindings.CreateDate(bindings.NewDate(int32(micros / microsPerDay))), nil
		}
	case *arrow.TimestampType:
		if t.TimeZone != "" {
			break
		}
		if t.Unit == arrow.Nanosecond || nanos%1000 != 0 {
			if year := v.Year(); year < 1678 || year > 2261 {
				return bindings.Value{}, fmt.Errorf("the year %d does not fit nanoseconds of 64 bits", year)
			}
			return createTimestamp(v.UnixNano(), arrow.Nanosecond, false), nil
		}
		if n, exact := rescale(micros, arrow.Microsecond, t.Unit); exact {
			return createTimestamp(n, t.Unit, false), nil
		}
		return createTimestamp(micros, arrow.Microsecond, false), nil
	}
	if nanos%1000 != 0 {
		return bindings.Value{}, fmt.Errorf("the instant %s has nanoseconds, a timestamp with zone holds microseconds", v.Format(time.RFC3339Nano))
	}
	return createTimestamp(micros, arrow.Microsecond, true), nil
}
