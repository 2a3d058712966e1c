package startree

// Bucket is a unit of date_trunc that a DATE or TIMESTAMP dimension is reduced to;
// "" leaves the value as it is.
type Bucket string

// The buckets.
const (
	BucketNone    Bucket = ""
	BucketSecond  Bucket = "second"
	BucketMinute  Bucket = "minute"
	BucketHour    Bucket = "hour"
	BucketDay     Bucket = "day"
	BucketWeek    Bucket = "week" // begins on Monday
	BucketMonth   Bucket = "month"
	BucketQuarter Bucket = "quarter"
	BucketYear    Bucket = "year"
)
